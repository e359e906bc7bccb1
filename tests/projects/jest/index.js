export const duration = (seconds) => `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
