// Collects the places of all `TODO`s in a folder and the folders in it. It imports nothing, so that `node --test` can test it.
export function search(folder, list, text) {
  const found = [];
  for (const { name, kind } of list(folder)) {
    const path = `${folder}/${name}`;
    if (kind === 'directory') {
      found.push(...search(path, list, text));
      continue;
    }
    text(path).split('\n').forEach((line, index) => {
      if (line.includes('TODO')) found.push(`${path}:${index + 1} has a TODO`);
    });
  }
  return found;
}
