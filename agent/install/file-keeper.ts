import { existsSync, lstatSync, statSync } from 'node:fs';
import { chmod, link } from 'node:fs/promises';
import { messageOf } from '../../runtime/error-text.ts';
import { kindOfFile } from '../../runtime/read-regular-file.ts';
import { type BackoffLimits, type Contest, decideBackoff } from '../repair/decide-backoff.ts';
import { decideFile, type FileStep, type ObservedFile, type Successor } from './decide-file.ts';
import { compareContent, writePlanned } from './file-content.ts';
import { type PlannedFile, replacedPath } from './planned-file.ts';

/** Dependencies of keeping files. */
type FileKeeperDeps = {
  readonly monotonicMs: () => number;
  /** Finds whose a file of one of our names is, when it is not the one that was written. */
  readonly successorOf: (path: string) => Promise<Successor | undefined>;
  /** Called when a file that is not as planned was noticed, before anything is done about it. */
  readonly noticed: (path: string, why: string) => void;
  /** Called once when another program began to keep replacing a file. */
  readonly contested: (path: string) => void;
};

/** What a pass found and did, by paths. */
export type FilePass = {
  readonly written: readonly string[];
  readonly kept: readonly string[];
  /** What is not as planned: it could not be written, waits, or is another program's. */
  readonly problems: readonly { readonly file: PlannedFile; readonly why: string; readonly error?: unknown }[];
};

type MutablePass = { readonly [field in keyof FilePass]: FilePass[field][number][] };

/** A program that replaces a file again and again is answered five times within a minute, then later each time. */
const LIMITS: BackoffLimits = {
  ...{ peaceMs: 60_000, freeRepairs: 5, firstMs: 2_000, longestMs: 300_000, calmMs: 60_000 },
  ...{ alarmCount: 6, windowMs: 600_000 },
};

/**
 * Keeps files as planned: observes each, decides and applies, one after the other. Contents are read when a file, or what it is
 * a copy of, changed since they were found equal: by its inode, size and times.
 */
export class FileKeeper {
  readonly #deps: FileKeeperDeps;
  /** Of each path that was found equal: what it and its source were then. */
  readonly #equal = new Map<string, { readonly file: string; readonly source: string }>();
  readonly #contests = new Map<string, Contest>();
  /** Paths that were as planned once: from then on another program may have a reason to replace them. */
  readonly #installed = new Set<string>();

  constructor(deps: FileKeeperDeps) {
    this.#deps = deps;
  }

  /** Never rejects: what fails is a problem of its file. */
  async pass(plan: readonly PlannedFile[]): Promise<FilePass> {
    const pass = { written: [] as string[], kept: [] as string[], problems: [] as FilePass['problems'][number][] };
    for (const file of plan) {
      try {
        await this.#keep(file, pass);
      } catch (error) {
        pass.problems.push({ file, why: messageOf(error), error });
        // Those behind it in the plan may need it.
        if (!this.#installed.has(file.path)) break;
      }
    }
    return pass;
  }

  async #keep(file: PlannedFile, { written, kept, problems }: MutablePass): Promise<void> {
    const { path, source } = file;
    const target = source.kind === 'link' ? source.to : undefined;
    // Another name of a file that is not as planned itself.
    if (problems.some((problem) => problem.file.path === target)) return;
    const step = await this.#step(file);
    if (step.kind === 'keep') this.#installed.add(path);
    if (step.kind === 'keep' || step.kind === 'leave') kept.push(path);
    if (step.kind === 'leave' && step.isProblem) problems.push({ file, why: step.why });
    if (step.kind === 'keep' || step.kind === 'leave') return;
    const isFollowing = target !== undefined && written.includes(target);
    if (!isFollowing) {
      this.#deps.noticed(path, step.why);
      if (this.#isHeld(path)) {
        const why = `${step.why}; another program keeps replacing it, it is put back later each time`;
        problems.push({ file, why });
        return;
      }
    }
    if (step.kind === 'write' && source.kind !== 'text' && !this.#installed.has(path)) await this.#keepProduct(path);
    if (step.kind === 'set-mode') await chmod(path, file.mode);
    else this.#noteWritten(file, await writePlanned(file));
    this.#installed.add(path);
    written.push(path);
  }

  /** Gives an executable of the closed product a second name before ours takes its place; the first one is kept. */
  async #keepProduct(path: string): Promise<void> {
    if (lstatSync(path, { throwIfNoEntry: false })?.isFile() !== true) return;
    if ((await this.#deps.successorOf(path))?.kind !== 'product') return;
    const kept = replacedPath(path);
    if (existsSync(kept)) return;
    await link(path, kept);
    this.#deps.noticed(path, `it is of another product, and is kept as ${kept}`);
  }

  /** Returns the paths that other programs kept replacing within the last ten minutes. */
  contested(): readonly string[] {
    const nowMs = this.#deps.monotonicMs();
    const isOne = ({ isFight, undoneAtMs }: Contest) =>
      isFight && nowMs - (undoneAtMs.at(-1) ?? nowMs) < LIMITS.windowMs;
    return [...this.#contests].filter(([, contest]) => isOne(contest)).map(([path]) => path);
  }

  async #step(file: PlannedFile): Promise<FileStep> {
    const observed = await this.#observe(file);
    const first = decideFile(file, observed);
    // At the start the files are those of the agent that starts: a release before it may be the newer one.
    if (first.kind !== 'write' || observed.kind !== 'file' || !this.#installed.has(file.path)) return first;
    return decideFile(file, observed, await this.#deps.successorOf(file.path));
  }

  async #observe({ path, source }: PlannedFile): Promise<ObservedFile> {
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    if (stat === undefined) return { kind: 'absent' };
    if (stat.isSymbolicLink()) return { kind: 'link' };
    if (!stat.isFile()) return { kind: 'other', what: kindOfFile(lstatSync(path)) };
    const mode = Number(stat.mode) & 0o7777;
    const now = { file: identityOf(path), source: sourceIdentity(source) };
    const known = this.#equal.get(path);
    // A source that is not there any more changes nothing about what was installed.
    const isSameSource = now.source === known?.source || now.source === '';
    if (known?.file === now.file && isSameSource) return { kind: 'file', mode, content: 'equal' };
    const content = await compareContent(path, source);
    if (content === 'equal' && identityOf(path) === now.file) this.#equal.set(path, now);
    return { kind: 'file', mode, content };
  }

  /** What was just written is equal, unless another program replaced it meanwhile. */
  #noteWritten({ path, source }: PlannedFile, ino: bigint | undefined): void {
    if (ino === undefined || lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino !== ino) return;
    this.#equal.set(path, { file: identityOf(path), source: sourceIdentity(source) });
  }

  /** Reports whether a file waits, because others replaced it too often; counts this time. */
  #isHeld(path: string): boolean {
    // What was never as planned is no repair.
    if (!this.#installed.has(path)) return false;
    const nowMs = this.#deps.monotonicMs();
    const { verdict, isAlarm, contest } = decideBackoff(
      this.#contests.get(path),
      { changedAtMs: nowMs, nowMs },
      LIMITS,
    );
    this.#contests.set(path, contest);
    if (isAlarm) this.#deps.contested(path);
    return verdict === 'hold';
  }
}

function sourceIdentity(source: PlannedFile['source']): string {
  if (source.kind === 'copy') return identityOf(source.of);
  if (source.kind === 'link') return identityOf(source.to);
  return source.kind === 'text' ? source.text : '';
}

/** Links are followed: those of the plugin folder are an image's own. */
function identityOf(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? '' : [stat.dev, stat.ino, stat.size, stat.mtimeNs, stat.ctimeNs].join(':');
}
