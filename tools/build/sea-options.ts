/** Says how Node makes a single executable. @see https://nodejs.org/api/single-executable-applications.html */
export const SEA_OPTIONS = {
  disableExperimentalSEAWarning: true,
  // Saves compiling; a start-up snapshot costs more to read than it saves.
  useCodeCache: true,
  useSnapshot: false,
  execArgv: [],
  // Makes the executable deaf to NODE_OPTIONS, which on a node may say anything.
  execArgvExtension: 'none',
};
