import { spawnSync } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from './skel/env.ts';

/** Other plugins of the node, as the runtime would call them. @see CNI SPEC, "Section 4: Plugin Delegation" */
export type Plugins = {
  /** CNI_PATH as the runtime gave it. */
  readonly folders: string;
  /** Returns the path of a plugin, undefined when no folder has it. */
  find(name: string): string | undefined;
  /** Calls it with the variables of this call, but for those in `variables`, and waits for its end. */
  run(
    path: string,
    conf: object,
    variables?: Environment,
  ): { readonly code: number; readonly stdout: string; readonly stderr: string };
};

/** Longest time of one call: portmap waits for the lock of iptables. */
const TIMEOUT_MS = 30_000;
const MAX_OUTPUT_BYTES = 1 << 20;

/** Makes the calls of other plugins with the environment of this one. */
export function openPlugins(env: Environment): Plugins {
  const folders = env['CNI_PATH'] ?? '';
  return {
    folders: folders === '' ? 'which is not set' : folders,
    find: (name) =>
      folders
        .split(':')
        .filter((folder) => folder.startsWith('/'))
        .map((folder) => join(folder, name))
        .find(isExecutable),
    run: (path, conf, variables = {}) => {
      const input = JSON.stringify(conf);
      const limits = { timeout: TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: MAX_OUTPUT_BYTES } as const;
      const options = { input, env: { ...env, ...variables }, encoding: 'utf8', ...limits } as const;
      // Nothing else is under way in this process.
      const { status, signal, error, stdout, stderr } = spawnSync(path, [], options);
      const why = error?.message ?? (signal === null ? '' : `ended by ${signal}`);
      return { code: status ?? 1, stdout: stdout ?? '', stderr: `${why} ${stderr ?? ''}`.trim() };
    },
  };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // The next folder may have it.
    return false;
  }
}
