import { isNetlinkError } from '../netlink/netlink-error.ts';
import { messageOf } from '../runtime/error-text.ts';
import { attachFilter, detachFilter } from './fast-path/attach-filter.ts';
import { flowtableCommandsOf, isFlowtableOperation } from './flowtable-operation.ts';
import type { Kernel } from './kernel.ts';
import { inverseOf, type Operation, renderOperation } from './operation.ts';
import { toRequests } from './to-request.ts';

/**
 * The result of applying operations. `skipped`: the kernel was in the wanted state already, because it changed since it
 * was observed.
 */
type ApplyResult = { readonly done: readonly Operation[]; readonly skipped: readonly Operation[] };

/** Called for each change of the kernel, also for each that is undone. `line` is the change as a shell command. */
type OnOperation = (operation: Operation, line: string) => void;

/**
 * The failure of an operation, with the operations done before, the rest, and those that were undone. `code` is that of
 * the cause.
 */
export class ApplyError extends Error {
  readonly code: string;
  readonly operation: Operation;
  readonly done: readonly Operation[];
  readonly pending: readonly Operation[];
  /** Those of `done` that were undone. */
  readonly undone: readonly Operation[];

  constructor(fields: Omit<ApplyError, keyof Error | 'code'>, cause: unknown) {
    const { done, pending, undone } = fields;
    const reason = messageOf(cause);
    const rest = `${done.length} done before it, ${undone.length} of these undone, ${pending.length} not tried`;
    super(`cannot apply "${renderOperation(fields.operation)}": ${reason} (${rest})`, { cause });
    this.name = 'ApplyError';
    this.code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'UNKNOWN';
    this.operation = fields.operation;
    this.done = done;
    this.pending = pending;
    this.undone = undone;
  }
}

/**
 * Applies operations in their order. When one fails, those done are undone, newest first, as far as possible.
 * @throws ApplyError
 */
export async function applyOperations(
  kernel: Kernel,
  operations: readonly Operation[],
  options: { readonly onOperation?: OnOperation } = {},
): Promise<ApplyResult> {
  const done: Operation[] = [];
  const skipped: Operation[] = [];
  for (const [at, operation] of operations.entries()) {
    try {
      const outcome = await applyOne(kernel, operation);
      (outcome === 'done' ? done : skipped).push(operation);
      if (outcome === 'done') options.onOperation?.(operation, renderOperation(operation));
    } catch (error) {
      const undone = await undo(kernel, done, options.onOperation);
      throw new ApplyError({ operation, done, pending: operations.slice(at + 1), undone }, error);
    }
  }
  return { done, skipped };
}

async function undo(
  kernel: Kernel,
  done: readonly Operation[],
  onOperation?: OnOperation,
): Promise<readonly Operation[]> {
  const undone: Operation[] = [];
  for (const operation of done.toReversed()) {
    const inverse = inverseOf(operation);
    try {
      await applyOne(kernel, inverse);
      undone.push(operation);
      onOperation?.(inverse, renderOperation(inverse));
    } catch {
      // Best effort: the first error is the one to report, and a later repair corrects the rest. `undone` lists what
      // was undone.
    }
  }
  return undone;
}

async function applyOne(kernel: Kernel, operation: Operation): Promise<'done' | 'skipped'> {
  if (operation.kind === 'load-nft') {
    await kernel.nft.load(operation.commands);
    return 'done';
  }
  if (isFlowtableOperation(operation)) {
    await kernel.nft.load(flowtableCommandsOf(operation));
    return 'done';
  }
  if (operation.kind === 'set-sysctl') {
    const { key, value, isOptional, keepsConnections } = operation;
    if (keepsConnections && (await kernel.connections?.keep()) !== true) return 'skipped';
    const [outcome] = kernel.sysctl.setAll([{ key, value, ...(isOptional && { isOptional }) }]);
    return outcome === 'changed' ? 'done' : 'skipped';
  }
  if (operation.kind === 'attach-filter') {
    attachFilter(kernel, operation.filter);
    return 'done';
  }
  if (operation.kind === 'detach-filter') return detachFilter(kernel.rtnetlink, operation.filter);
  // One exchange: nothing comes between the requests of an operation.
  const outcome = kernel.rtnetlink.execute(toRequests(operation)).at(-1);
  if (outcome?.kind !== 'error') return 'done';
  if (isAlreadyApplied(operation, outcome.error)) return 'skipped';
  throw outcome.error;
}

// The kernel may change between observing and applying: a route is deleted with its link, a Pod's own wiring adds a
// rule.
function isAlreadyApplied(operation: Operation, error: unknown): boolean {
  if (operation.kind.startsWith('delete-')) return isNetlinkError(error, 'ENOENT', 'ESRCH', 'ENODEV', 'EADDRNOTAVAIL');
  return (operation.kind === 'add-rule' || operation.kind === 'add-address') && isNetlinkError(error, 'EEXIST');
}
