/** Name of the launcher in the folder of plugins; in the folder of a runtime it has the names of the executables. */
export const LAUNCHER = 'tke-eni-launcher';

/** Name of the complete program beside an installed launcher. It takes its plugin from the name that it is called by. */
export const COMPLETE_PROGRAM = 'tke-eni-cni';

/** Name of a file beside an installed launcher: the complete program does not run on this host. */
export const UNUSABLE_MARKER = 'tke-eni-cni.unusable';
