/** Folder of the host for what the executables keep beyond a reboot, when the configuration names no `dataDir`. */
export const DEFAULT_DATA_DIR = '/var/lib/cni/tke-eni';
