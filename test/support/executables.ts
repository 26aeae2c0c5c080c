import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { LAUNCHER } from '../../cni-plugins/launcher/names.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** The packaged executables that `make build` leaves. */
export const DIST_BIN_DIR = join(ROOT, 'dist', 'bin');

/** The CNI executables with their launcher in front, as the agent installs them. */
export const CNI_DIR = join(ROOT, 'dist', 'cni');

/** The launcher of the CNI executables; there is none where `make build` found no compiler. */
export const LAUNCHER_PATH = join(DIST_BIN_DIR, LAUNCHER);

/** Whether there is a launcher. */
export const hasLauncher = existsSync(LAUNCHER_PATH);

/** Variables that name other folders for some of the executables: tests of skew run two releases together. */
const VARIABLES = {
  TKE_ENI_CNI_BIN: ['tke-route-eni', 'tke-eni-ipamc', 'tke-direct-eni'],
  TKE_ENI_AGENT_BIN: ['tke-eni-agent'],
  TKE_ENI_IPAMD_BIN: ['tke-eni-ipamd'],
  TKE_ENI_SCHEDULER_BIN: ['tke-eni-ip-scheduler'],
  TKE_ENI_WEBHOOK_BIN: ['tke-eni-ip-webhook'],
  TKE_ENI_CCM_BIN: ['tke-cloud-controller-manager'],
  TKE_ENI_CLI_BIN: ['tke-eni'],
} as const;

const taken = new Map<string, number>();

/** Returns the folder of an executable: dist/bin, or the first that its variable names. */
export function binDirOf(executable: string): string {
  return foldersOf(variableOf(executable))[0] ?? DIST_BIN_DIR;
}

/** Returns the folder from which an agent installs the executables: dist/bin, or that of another release. */
export function pluginDir(): string {
  const folder = foldersOf('TKE_ENI_CNI_BIN')[0];
  return folder === undefined || folder === CNI_DIR ? DIST_BIN_DIR : folder;
}

/** Returns the path of an executable that is about to be started; of several folders, with commas, each has its turn. */
export function executablePath(executable: string): string {
  const variable = variableOf(executable);
  const folders = foldersOf(variable);
  const turn = taken.get(variable) ?? 0;
  taken.set(variable, turn + 1);
  return join(folders[turn % folders.length] ?? DIST_BIN_DIR, executable);
}

function variableOf(executable: string): string {
  const found = Object.entries(VARIABLES).find(([, names]) => names.some((name) => name === executable));
  return found?.[0] ?? '';
}

function foldersOf(variable: string): readonly string[] {
  return (process.env[variable] ?? '').split(',').filter((folder) => folder !== '');
}

/** Takes all executables from one folder. */
export function useExecutablesOf(folder: string): void {
  for (const name of Object.keys(VARIABLES)) process.env[name] = folder;
}
