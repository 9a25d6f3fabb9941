//! Plugins that misbehave: each ends as a documented error attributed to the plugin, and the run goes on or ends as it should.
