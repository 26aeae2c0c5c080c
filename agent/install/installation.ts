import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { UNUSABLE_MARKER } from '../../cni-plugins/launcher/names.ts';
import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import type { Logger } from '../../runtime/log.ts';
import { decideVersions, readSupportedVersions } from './chain-versions.ts';
import { type ConflistOptions, installConflist, pluginsAfterOurs, renderConflist } from './conflist.ts';
import {
  installExecutables,
  installReferencePlugins,
  LAUNCHER_FILES,
  PLUGIN_LIBRARIES,
  PLUGIN_NAMES,
  REFERENCE_PLUGIN_NAMES,
  usesLauncher,
  warmPageCache,
} from './executables.ts';
import { recordInstalled, recordIntent, removeIntent } from './install-record.ts';
import { tryOnHost } from './try-on-host.ts';

/** What to install, and where. */
type InstallationSettings = ConflistOptions & {
  /** '' installs nothing. */
  readonly pluginDir: string;
  /** '' copies none. */
  readonly referencePluginDir: string;
  readonly cniBinDir: string;
  /** Whether the runtime calls a launcher; `auto`: where `pluginDir` has one. */
  readonly cniLauncher: 'auto' | 'off';
  readonly cniConfDir: string;
  /** The host's root, as a path of this mount namespace. */
  readonly hostRoot: string;
};

/** Receives what keeps the network configuration from this node. */
type InstallationListener = {
  /** Called when that has changed; `why` undefined: they run now. */
  hostProblemChanged(why: string | undefined): void;
  /** Called when other plugins of the user's are missing than before; none: the configuration waits for none. */
  missingPluginsChanged(missing: readonly string[]): void;
};

/** Installs step by step; each step logs its failure and is tried again by the next call. */
export type Installation = {
  /**
   * Installs the executables, which has no effect before the agent serves. Then tries one as the runtime would, until
   * that does not fail.
   */
  ensureExecutables(): Promise<void>;
  /**
   * Installs the conflist, by which the runtime sends Pods here: only when ADDs can be served, the executables run and
   * the plugins of the user are there. A conflist of before stays until then.
   */
  ensureConflist(): Promise<void>;
  /** Reads the executable, so that the page cache holds it. */
  warmExecutable(): Promise<void>;
};

/** Prepares the installation of executables and network configuration. */
export function openInstallation(
  settings: InstallationSettings,
  log: Logger,
  listener: InstallationListener = { hostProblemChanged: () => {}, missingPluginsChanged: () => {} },
): Installation {
  const isEnabled = settings.pluginDir !== '';
  const main = join(settings.cniBinDir, PLUGIN_NAMES[0]);
  let hasConflist = false;
  let hasExecutables = false;
  let isVerified = false;
  let hostProblem: string | undefined;
  let missingBefore = '';
  let installing: Promise<void> | undefined;
  const warmExecutable = async (): Promise<void> => {
    if (isEnabled && hasExecutables) await warmPageCache(main).catch(() => {});
  };
  const install = async (): Promise<void> => {
    if (hasExecutables) return;
    try {
      const { own, reference } = await installAll(settings, log);
      hasExecutables = true;
      log.info('executables installed', { dir: settings.cniBinDir, own, reference });
      await warmExecutable();
    } catch (error) {
      log.error('executables not installed, will be tried again', { dir: settings.cniBinDir, error });
    }
  };
  const tryExecutable = async (): Promise<void> => {
    if (!hasExecutables || isVerified) return;
    const marker = join(settings.cniBinDir, UNUSABLE_MARKER);
    // A launcher that finds the marker tries nothing.
    rmSync(marker, { force: true });
    const trial = await tryOnHost(settings.hostRoot, main);
    isVerified = trial.kind !== 'fails';
    if (trial.kind === 'unknown') log.info('executables could not be tried on the host', { why: trial.why });
    if (trial.kind === 'fails' && usesLauncher(settings.pluginDir, settings.cniLauncher)) {
      // The launcher runs everywhere, and the agent makes its calls. Only a call while the agent is away fails.
      isVerified = true;
      writeFileAtomically(marker, `${trial.why}\n`, 0o644);
      log.warn(
        'the complete CNI program does not run on the host: while the agent is away, calls fail and no DEL is stored',
        {
          why: trial.why,
        },
      );
      return;
    }
    const before = hostProblem;
    hostProblem = trial.kind === 'fails' ? `the CNI executables do not run on this node: ${trial.why}` : undefined;
    if (hostProblem === before) return;
    if (hostProblem === undefined) log.info('executables run on the host now');
    else log.error('executables do not run on the host, will be tried again', { path: main, why: hostProblem });
    listener.hostProblemChanged(hostProblem);
  };
  const findMissing = (): readonly string[] => {
    const { chainedPlugins, cniBinDir } = settings;
    const missing = chainedPlugins.map(({ type }) => type).filter((type) => !existsSync(join(cniBinDir, type)));
    const found = missing.join(', ');
    if (found === missingBefore) return missing;
    missingBefore = found;
    if (missing.length > 0) log.warn('network configuration waits for chained plugins', { dir: cniBinDir, missing });
    listener.missingPluginsChanged(missing);
    return missing;
  };
  return {
    // Timer and readiness may both call it; the second call waits for the first.
    ensureExecutables: async () => {
      if (!isEnabled) return;
      installing ??= install()
        .then(tryExecutable)
        .finally(() => {
          installing = undefined;
        });
      await installing;
    },
    ensureConflist: async () => {
      if (!isEnabled || !hasExecutables || hasConflist || hostProblem !== undefined) return;
      if (findMissing().length > 0) return;
      try {
        const supported = pluginsAfterOurs(settings).map(({ type }) =>
          supportedVersionsOf(settings.cniBinDir, type, log),
        );
        const versions = decideVersions(await Promise.all(supported));
        const outcome = installConflist(settings.cniConfDir, renderConflist(settings, versions));
        hasConflist = true;
        log.info('network configuration installed', { dir: settings.cniConfDir, outcome, ...versions });
      } catch (error) {
        log.error('network configuration not installed, will be tried again', { dir: settings.cniConfDir, error });
      }
    },
    warmExecutable,
  };
}

/**
 * Installs all files and records which are ours, so that an uninstallation removes those and no others. Without a
 * record (a folder that was filled beforehand and is read-only) the node has its network all the same.
 */
async function installAll(
  { pluginDir, referencePluginDir, cniBinDir, cniLauncher }: InstallationSettings,
  log: Logger,
) {
  const record = (write: () => void): void => {
    try {
      write();
    } catch (error) {
      log.warn('what is installed is not recorded, an uninstallation may leave it', { dir: cniBinDir, error });
    }
  };
  const hasReference = referencePluginDir !== '';
  mkdirSync(cniBinDir, { recursive: true, mode: 0o755 });
  const lacking = REFERENCE_PLUGIN_NAMES.filter(
    (name) => hasReference && existsSync(join(referencePluginDir, name)) && !existsSync(join(cniBinDir, name)),
  );
  // Our own files are recognized by their content too; a reference plugin of equal content may be anyone's.
  record(() => recordIntent(cniBinDir, lacking));
  const own = await installExecutables(pluginDir, cniBinDir, usesLauncher(pluginDir, cniLauncher));
  const reference = hasReference
    ? await installReferencePlugins(referencePluginDir, cniBinDir)
    : { installed: [], kept: [] };
  record(() => {
    recordInstalled(cniBinDir, [...PLUGIN_NAMES, ...LAUNCHER_FILES, ...PLUGIN_LIBRARIES, ...reference.installed]);
    // Someone else was faster.
    removeIntent(cniBinDir, reference.kept);
  });
  return { own, reference };
}

/**
 * Reads the versions of a chained plugin. One that is missing or does not answer must not keep the node from its
 * network: it may be installed in a minute.
 */
async function supportedVersionsOf(binDir: string, name: string, log: Logger): Promise<readonly string[]> {
  try {
    return await readSupportedVersions(binDir, name);
  } catch (error) {
    log.warn('the CNI versions of a chained plugin cannot be read, the oldest is assumed', { name, error });
    return [];
  }
}
