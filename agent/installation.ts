import { join } from 'node:path';
import type { Logger } from '../runtime/log.ts';
import { type ConflistOptions, installConflist, renderConflist } from './install/conflist.ts';
import { installExecutables, installReferencePlugins, PLUGIN_NAMES, warmPageCache } from './install/executables.ts';

/** What to install, and where. */
export type InstallationSettings = ConflistOptions & {
  /** '' installs nothing. */
  readonly pluginDir: string;
  /** '' copies none. */
  readonly referencePluginDir: string;
  readonly cniBinDir: string;
  readonly cniConfDir: string;
};

/** Installs step by step; each step logs its failure and is tried again by the next call. */
export type Installation = {
  /** Executables: harmless before the agent serves. */
  putExecutables(): Promise<void>;
  /** The conflist, which turns Pods over to us: only when an ADD could be served. */
  putConflist(): void;
  /** Keeps the executable in the page cache. */
  keepWarm(): Promise<void>;
};

/** Prepares the installation of the CNI side. */
export function openInstallation(settings: InstallationSettings, log: Logger): Installation {
  const isWanted = settings.pluginDir !== '';
  let hasConflist = false;
  let hasExecutables = false;
  const keepWarm = async (): Promise<void> => {
    if (isWanted && hasExecutables) await warmPageCache(join(settings.cniBinDir, PLUGIN_NAMES[0])).catch(() => {});
  };
  return {
    putExecutables: async () => {
      if (!isWanted || hasExecutables) return;
      try {
        const own = await installExecutables(settings.pluginDir, settings.cniBinDir);
        const reference =
          settings.referencePluginDir === ''
            ? { installed: [], kept: [] }
            : await installReferencePlugins(settings.referencePluginDir, settings.cniBinDir);
        hasExecutables = true;
        log.info('executables installed', { dir: settings.cniBinDir, own, reference });
        await keepWarm();
      } catch (error) {
        log.error('executables not installed, will be tried again', { dir: settings.cniBinDir, error });
      }
    },
    putConflist: () => {
      if (!isWanted || !hasExecutables || hasConflist) return;
      try {
        const outcome = installConflist(settings.cniConfDir, renderConflist(settings));
        hasConflist = true;
        log.info('network configuration installed', { dir: settings.cniConfDir, outcome });
      } catch (error) {
        log.error('network configuration not installed, will be tried again', { dir: settings.cniConfDir, error });
      }
    },
    keepWarm,
  };
}
