import type { PlannedFile } from './planned-file.ts';

/** What stands at the path of a planned file. */
export type ObservedFile =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'file';
      /** Permission bits. */
      readonly mode: number;
      /** Compared with what is planned; `part`: it ends before ours does, as after a disk was full. */
      readonly content: 'equal' | 'part' | 'different';
    }
  | { readonly kind: 'link' }
  /** A folder, a FIFO, a socket, a device. */
  | { readonly kind: 'other'; readonly what: string };

/** Whose a file of one of our names is that is not the one that we installed. */
export type Successor = { readonly kind: 'release'; readonly release: string } | { readonly kind: 'product' };

/** What is done about a file. */
export type FileStep =
  | { readonly kind: 'keep' }
  | { readonly kind: 'write' | 'set-mode' | 'remove'; readonly why: string }
  /** It is another program's. */
  | { readonly kind: 'leave'; readonly why: string; readonly isProblem: boolean };

const KEEP: FileStep = { kind: 'keep' };

/**
 * Decides what to do about a file. One of ours is replaced whatever it is, unless a newer release or the closed product puts its
 * own there while this agent runs. A shared one is written where there is none, or the beginning of one.
 * @param successor Whose the file is; undefined: of no program whose file is to stay.
 */
export function decideFile(planned: PlannedFile, observed: ObservedFile, successor?: Successor): FileStep {
  const write = (why: string): FileStep => ({ kind: 'write', why });
  if (planned.source.kind === 'none') {
    return observed.kind === 'absent' ? KEEP : { kind: 'remove', why: 'it is not used any more' };
  }
  if (observed.kind === 'absent') return write('it is not there');
  if (observed.kind === 'other') return write(`it is ${observed.what}`);
  if (observed.kind === 'link') return planned.owner === 'shared' ? KEEP : write('it is a link');
  if (observed.content === 'equal') {
    const isOurs = planned.owner === 'ours' || planned.isRecorded === true;
    if (!isOurs || observed.mode === planned.mode) return KEEP;
    return { kind: 'set-mode', why: `its mode is ${observed.mode.toString(8)}` };
  }
  if (planned.owner === 'shared') return observed.content === 'part' ? write('it is not complete') : KEEP;
  if (successor?.kind === 'release') {
    return { kind: 'leave', why: `it is of release ${successor.release}`, isProblem: false };
  }
  if (successor?.kind === 'product') return { kind: 'leave', why: 'it is of another product', isProblem: true };
  return write(observed.content === 'part' ? 'it is not complete' : 'it is another file');
}

/** Reports whether one release is newer than another, by their numbers: `0.2.0+abc` than `0.1.9`. */
export function isNewerRelease(one: string, other: string): boolean {
  const [a, b] = [numbersOf(one), numbersOf(other)];
  for (const [index, number] of a.entries()) if (number !== b[index]) return number > (b[index] ?? 0);
  return false;
}

function numbersOf(release: string): readonly number[] {
  const [, ...parts] = RELEASE.exec(release) ?? [];
  return parts.slice(0, 3).map(Number);
}

/** What an executable of ours prints for `--version`. */
export const RELEASE = /^(\d+)\.(\d+)\.(\d+)(?:[-+][0-9A-Za-z.+-]*)?$/;
