import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { UNUSABLE_MARKER } from '../../cni-plugins/launcher/names.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Logger } from '../../runtime/log.ts';
import { watchFolder } from '../../runtime/watch-folder.ts';
import { type ConfVersions, decideVersions, readSupportedVersions } from './chain-versions.ts';
import {
  CONFLIST_FILE,
  type ConflistOptions,
  endWithdrawal,
  isWithdrawn,
  planConflist,
  pluginsAfterOurs,
  renderConflist,
} from './conflist.ts';
import type { Successor } from './decide-file.ts';
import { warmPageCache } from './file-content.ts';
import { FileKeeper, type FilePass } from './file-keeper.ts';
import { findSuccessor } from './find-successor.ts';
import {
  type InstallRecord,
  isAsRecorded,
  readInstallRecord,
  recordInstalled,
  recordIntent,
  removeIntent,
  restoreInstallRecord,
} from './install-record.ts';
import { PLUGIN_NAMES, planExecutables, planReferencePlugins, usesLauncher } from './planned-file.ts';
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
export type InstallationListener = {
  /** Called when the complete program turned out not to run on this host, and again when it does: `why` is undefined then. */
  loaderProblemChanged(why: string | undefined): void;
  /** Called when other files are not as they were installed than before; undefined: all are. */
  filesProblemChanged(why: string | undefined): void;
  /** Called when other plugins of the user's are missing than before; none: the configuration waits for none. */
  missingPluginsChanged(missing: readonly string[]): void;
  /** Called when another program began to keep replacing files of ours; with all of which that is true. */
  contested(paths: readonly string[]): void;
};

/** Keeps the files of the node as they are planned; each step logs its failure and is tried again by the next call. */
export type Installation = {
  /**
   * Installs the executables, which has no effect before the agent serves, and puts back what others changed. Then tries one
   * as the runtime would, until that does not fail.
   */
  ensureExecutables(): Promise<void>;
  /**
   * Installs the conflist, by which the runtime sends Pods here: at first only when ADDs can be served. Always only when the
   * executables run and the plugins of the user are there. A conflist of before stays until then.
   */
  ensureConflist(isReady: boolean): Promise<void>;
  /**
   * Does both, again whenever the folders may have changed, until aborted; begins when the agent knows what the node is for
   * (`hasPlan`). Never rejects.
   */
  follow(node: { isReady(): boolean; hasPlan(): boolean }, signal: AbortSignal): Promise<void>;
  /** Has `follow` look now. */
  kick(): void;
  /** Reads the executable, so that the page cache holds it. */
  warmExecutable(): Promise<void>;
};

/** What an installation works with. */
type InstallationDeps = {
  readonly log: Logger;
  readonly release: string;
  readonly clock: Clock;
  readonly listener?: InstallationListener;
  /**
   * Says why another agent of this node keeps this one from taking Pods; undefined: there is none. Asked before the conflist is
   * installed. Absent: there is no question.
   */
  readonly otherAgent?: () => Promise<string | undefined>;
};

const SILENT: InstallationListener = {
  ...{ loaderProblemChanged: () => {}, filesProblemChanged: () => {} },
  ...{ missingPluginsChanged: () => {}, contested: () => {} },
};
/** Poll interval: changes may come without a notification. A look at files that did not change costs some `lstat`. */
const POLL_MS = 2_000;
/** Pause after a notification: who replaces files replaces several, and writes each in parts. */
const SETTLE_MS = 100;
/** Interval of trying executables that do not run on the host. */
const TRY_MS = 5_000;

/** Prepares the installation of executables and network configuration. */
export function openInstallation(settings: InstallationSettings, deps: InstallationDeps): Installation {
  return new KeptInstallation(settings, deps);
}

class KeptInstallation implements Installation {
  readonly #settings: InstallationSettings;
  readonly #log: Logger;
  readonly #release: string;
  readonly #clock: Clock;
  readonly #listener: InstallationListener;
  readonly #otherAgent: InstallationDeps['otherAgent'];
  readonly #changed: ChangeSignal;
  readonly #keeper: FileKeeper;
  readonly #isEnabled: boolean;
  readonly #hasLauncher: boolean;
  readonly #main: string;
  #isInstalled = false;
  #hasConflist = false;
  #verifiedAtMs: number | undefined;
  #triedAtMs = Number.NEGATIVE_INFINITY;
  /** Why the complete program does not run here; the launcher's marker says it too. */
  #unusable: string | undefined;
  #loaderProblem: string | undefined;
  #filesProblem: string | undefined;
  /** What is wrong with the executables, and with the conflist. */
  #problems: { executables?: string | undefined; conflist?: string | undefined } = {};
  #successor: Successor | undefined;
  #record: InstallRecord | undefined;
  #reported = new Set<string>();
  #missingBefore = '';
  #running: Promise<void> | undefined;

  constructor(
    settings: InstallationSettings,
    { log, release, clock, listener = SILENT, otherAgent }: InstallationDeps,
  ) {
    this.#settings = settings;
    this.#log = log;
    this.#release = release;
    this.#clock = clock;
    this.#listener = listener;
    this.#otherAgent = otherAgent;
    this.#changed = new ChangeSignal(clock);
    this.#isEnabled = settings.pluginDir !== '';
    this.#hasLauncher = usesLauncher(settings.pluginDir, settings.cniLauncher);
    this.#main = join(settings.cniBinDir, PLUGIN_NAMES[0]);
    this.#keeper = new FileKeeper({
      monotonicMs: () => clock.monotonicMs(),
      successorOf: (path) => this.#successorOf(path),
      noticed: (path, why) => this.#noticed(path, why),
      contested: (path) => {
        log.error('another program keeps replacing a file of ours, it is put back later each time', { path });
        listener.contested(this.#keeper.contested());
      },
    });
  }

  async ensureExecutables(): Promise<void> {
    if (!this.#isEnabled) return;
    this.#running ??= this.#installExecutables().finally(() => {
      this.#running = undefined;
    });
    await this.#running;
  }

  async ensureConflist(isReady: boolean): Promise<void> {
    const { cniConfDir } = this.#settings;
    if (!this.#isEnabled || !this.#isInstalled || this.#loaderProblem !== undefined) return;
    // Its own problem makes the agent not ready.
    const mayInstall = isReady || this.#hasConflist || this.#problems.conflist !== undefined;
    if (this.#problems.executables !== undefined || !mayInstall || this.#findMissing()) return;
    const other = this.#hasConflist ? undefined : await this.#otherAgent?.();
    if (other !== undefined) {
      if (other !== this.#problems.conflist) this.#log.error('no network configuration is installed', { why: other });
      return this.#setProblem('conflist', other);
    }
    if (!this.#hasConflist) endWithdrawal(cniConfDir);
    if (isWithdrawn(cniConfDir)) return this.#setProblem('conflist', undefined);
    const versions = await this.#versions();
    const file = planConflist(cniConfDir, renderConflist(this.#settings, versions));
    const pass = await this.#keeper.pass([file]);
    this.#reportProblems(pass);
    const [problem] = pass.problems;
    this.#setProblem('conflist', problem && describe(problem));
    if (problem !== undefined) return;
    const outcome = pass.written.length > 0 ? 'written' : 'unchanged';
    if (this.#hasConflist && outcome === 'unchanged') return;
    const message = this.#hasConflist ? 'network configuration put back' : 'network configuration installed';
    this.#hasConflist = true;
    this.#log.info(message, { dir: cniConfDir, outcome, ...versions });
  }

  async follow({ isReady, hasPlan }: Parameters<Installation['follow']>[0], signal: AbortSignal): Promise<void> {
    if (!this.#isEnabled) return;
    while (!hasPlan() && !signal.aborted) await this.#changed.wait(POLL_MS, signal);
    const { cniBinDir, cniConfDir } = this.#settings;
    const folders = [cniBinDir, cniConfDir].map((path) => watchFolder(path, () => this.#changed.notify()));
    while (!signal.aborted) {
      for (const folder of folders) folder.renew();
      try {
        await this.ensureExecutables();
        if (!signal.aborted) await this.ensureConflist(isReady());
      } catch (error) {
        this.#log.error('installed files cannot be looked at, will be tried again', { error });
      }
      await this.#changed.wait(POLL_MS, signal);
      await this.#clock.sleep(SETTLE_MS, signal).catch(() => {});
    }
    for (const folder of folders) folder.close();
  }

  kick(): void {
    this.#changed.notify();
  }

  async warmExecutable(): Promise<void> {
    if (this.#isEnabled && this.#isInstalled) await warmPageCache(this.#main).catch(() => {});
  }

  async #installExecutables(): Promise<void> {
    const { pluginDir, referencePluginDir, cniBinDir } = this.#settings;
    const own = planExecutables(pluginDir, cniBinDir, this.#hasLauncher, this.#unusable);
    const { files } = readInstallRecord(cniBinDir);
    const isRecorded = (name: string): boolean =>
      files.some((file) => file.name === name && isAsRecorded(cniBinDir, file));
    const reference = planReferencePlugins(referencePluginDir, cniBinDir, isRecorded);
    const lacking = reference.filter(({ path }) => !existsSync(path)).map(({ path }) => relative(cniBinDir, path));
    // Our own files are recognized by their content too; a reference plugin of equal content may be anyone's.
    if (lacking.length > 0) {
      this.#tryRecord(() => {
        mkdirSync(cniBinDir, { recursive: true, mode: 0o755 });
        recordIntent(cniBinDir, lacking);
      });
    }
    this.#successor = undefined;
    const passes = [await this.#keeper.pass(own), await this.#keeper.pass(reference)] as const;
    for (const pass of passes) this.#reportProblems(pass);
    this.#noteInstalled(passes[0], passes[1], lacking);
    const [problem] = passes[0].problems;
    this.#setProblem('executables', problem && describe(problem));
    if (problem === undefined) await this.#tryExecutable();
  }

  /** Records which files are ours, so that an uninstallation removes those and no others. */
  #noteInstalled(own: FilePass, reference: FilePass, lacking: readonly string[]): void {
    const { cniBinDir } = this.#settings;
    const namesOf = (paths: readonly string[]): readonly string[] => paths.map((path) => relative(cniBinDir, path));
    const written = namesOf([...own.written, ...reference.written]);
    const isFirst = !this.#isInstalled && own.problems.length === 0;
    if (written.length > 0 || isFirst) {
      this.#tryRecord(() => {
        // What another release put there is in its own record.
        const names = this.#successor === undefined ? namesOf([...own.written, ...own.kept]) : namesOf(own.written);
        recordInstalled(cniBinDir, [...names, ...namesOf(reference.written)], this.#release);
        // Someone else was faster.
        removeIntent(
          cniBinDir,
          lacking.filter((name) => !written.includes(name)),
        );
        this.#record = readInstallRecord(cniBinDir);
      });
      this.#verifiedAtMs = undefined;
    } else if (this.#record !== undefined) {
      const record = this.#record;
      this.#tryRecord(() => restoreInstallRecord(cniBinDir, record));
    }
    if (isFirst) {
      this.#isInstalled = true;
      const report = ({ written: installed, kept }: FilePass) => ({
        ...{ installed: namesOf(installed), kept: namesOf(kept.filter((path) => existsSync(path))) },
      });
      this.#log.info('executables installed', { dir: cniBinDir, own: report(own), reference: report(reference) });
    } else if (written.length > 0) this.#log.warn('installed files put back', { dir: cniBinDir, files: written });
  }

  /** Without a record (a folder that was filled beforehand and is read-only) the node has its network all the same. */
  #tryRecord(write: () => void): void {
    try {
      write();
    } catch (error) {
      const { cniBinDir: dir } = this.#settings;
      this.#reportOnce('record', () =>
        this.#log.warn('what is installed is not recorded, an uninstallation may leave it', { dir, error }),
      );
    }
  }

  async #tryExecutable(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#verifiedAtMs !== undefined || nowMs - this.#triedAtMs < TRY_MS) return;
    this.#triedAtMs = nowMs;
    await this.warmExecutable();
    const { cniBinDir, hostRoot } = this.#settings;
    // A launcher that finds the marker tries nothing.
    rmSync(join(cniBinDir, UNUSABLE_MARKER), { force: true });
    const trial = await tryOnHost(hostRoot, this.#main);
    const why = trial.kind === 'fails' ? trial.why : undefined;
    if (trial.kind === 'unknown') this.#log.info('executables could not be tried on the host', { why: trial.why });
    if (why === undefined || this.#hasLauncher) this.#verifiedAtMs = nowMs;
    // The launcher runs everywhere, and the agent makes its calls. Only a call while the agent is away fails.
    if (this.#hasLauncher) {
      this.#unusable = why;
      if (why === undefined) return;
      await this.#keeper.pass(planExecutables(this.#settings.pluginDir, cniBinDir, true, why));
      const text =
        'the complete CNI program does not run on the host: while the agent is away, calls fail and no DEL is stored';
      return this.#log.warn(text, { why });
    }
    const before = this.#loaderProblem;
    this.#loaderProblem = why && `the CNI executables do not run on this node: ${why}`;
    if (this.#loaderProblem === before) return;
    if (this.#loaderProblem === undefined) this.#log.info('executables run on the host now');
    else this.#log.error('executables do not run on the host, will be tried again', { path: this.#main, why });
    this.#listener.loaderProblemChanged(this.#loaderProblem);
  }

  #findMissing(): boolean {
    const { chainedPlugins, cniBinDir } = this.#settings;
    const missing = chainedPlugins.map(({ type }) => type).filter((type) => !existsSync(join(cniBinDir, type)));
    const found = missing.join(', ');
    if (found !== this.#missingBefore) {
      this.#missingBefore = found;
      if (missing.length > 0)
        this.#log.warn('network configuration waits for chained plugins', { dir: cniBinDir, missing });
      this.#listener.missingPluginsChanged(missing);
    }
    // One that was there when the configuration was put is missed by the runtime's own error.
    return missing.length > 0 && !this.#hasConflist;
  }

  async #versions(): Promise<ConfVersions> {
    const { cniBinDir } = this.#settings;
    const plugins = pluginsAfterOurs(this.#settings);
    const key = plugins.map(({ type }) => type).join();
    if (this.#asked?.key === key && this.#hasConflist) return this.#asked.versions;
    const supported = plugins.map(({ type }) => supportedVersionsOf(cniBinDir, type, this.#log));
    const versions = decideVersions(await Promise.all(supported));
    this.#asked = { key, versions };
    return versions;
  }

  #asked: { readonly key: string; readonly versions: ConfVersions } | undefined;

  async #successorOf(path: string): Promise<Successor | undefined> {
    const { cniBinDir: binDir, cniConfDir, hostRoot } = this.#settings;
    // A newer release that put its executables here has its own configuration.
    if (path === join(cniConfDir, CONFLIST_FILE)) return this.#successor;
    const own = { binDir, hostRoot, release: this.#release, record: this.#record };
    const found = await findSuccessor(path, own);
    if (found !== undefined) this.#successor = found;
    if (found?.kind === 'release')
      this.#reportOnce(`${path} ${found.release}`, () =>
        this.#log.info('an executable of another release of ours is left', { path, release: found.release }),
      );
    return found;
  }

  #noticed(path: string, why: string): void {
    if (!this.#isInstalled || path === join(this.#settings.cniBinDir, UNUSABLE_MARKER)) return;
    const kind = path === join(this.#settings.cniConfDir, CONFLIST_FILE) ? 'conflist' : 'executables';
    if (kind === 'executables' || this.#hasConflist) this.#setProblem(kind, `${path} is not as installed: ${why}`);
  }

  #reportProblems({ problems }: FilePass): void {
    for (const { file, why, error } of problems)
      this.#reportOnce(`${file.path} ${why}`, () =>
        this.#log.error('not installed, will be tried again', {
          path: file.path,
          why,
          ...(error === undefined ? {} : { error }),
        }),
      );
    if (problems.length === 0) return;
    const known = new Set(problems.map(({ file, why }) => `${file.path} ${why}`));
    this.#reported = new Set([...this.#reported].filter((text) => known.has(text) || text === 'record'));
  }

  #reportOnce(key: string, report: () => void): void {
    if (!this.#reported.has(key)) report();
    this.#reported.add(key);
  }

  #setProblem(kind: 'executables' | 'conflist', why: string | undefined): void {
    this.#problems = { ...this.#problems, [kind]: why };
    const problem = this.#problems.executables ?? this.#problems.conflist;
    if (problem === this.#filesProblem) return;
    this.#filesProblem = problem;
    this.#listener.filesProblemChanged(problem);
  }
}

function describe({ file, why }: FilePass['problems'][number]): string {
  return `${file.path} is not as installed: ${why}`;
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
