// Refuses a deployment before its review, and commands of agents that push to a repository. What is thrown is the reason of the refusal.
export const policyRules = {
  judgeCall(text) {
    const call = JSON.parse(text) ?? {};
    if (call.tool === 'shell' && String(call.arguments?.command).includes('git push')) {
      throw 'an agent must not push to a repository';
    }
  },

  judgeEdge(text) {
    const edge = JSON.parse(text) ?? {};
    if (edge.to === 'deploy' && !edge.succeeded?.includes('review')) {
      throw `\`${edge.to}\` needs a successful \`review\` before it`;
    }
  },
};
