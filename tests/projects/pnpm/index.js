const count = require('count');

// Returns a duration in minutes and seconds.
exports.duration = (seconds) => `${count.whole(seconds, 60)}m ${seconds % 60}s`;
