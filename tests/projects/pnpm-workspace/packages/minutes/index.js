// Returns a duration in minutes and seconds.
exports.duration = (seconds) => `${Math.floor(seconds / 60)}m ${seconds % 60}s`;
