# why: tests read `.env`, which git ignores
# source: https://github.com/motdotla/dotenv#readme
# setting: workspace.include = [".env"]
grep -q '^TOKEN=' .env
