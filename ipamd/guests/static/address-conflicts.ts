import type { Cloud, IpUser } from '../../../cloud/cloud.ts';
import type { CloudError } from '../../../cloud/cloud-error.ts';
import type { WorkQueue } from '../../../kube/work-queue.ts';
import { type BackoffSettings, backoffMs } from '../../../runtime/backoff.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { NecEntry } from '../../cache/decode-nec.ts';
import type { ClaimRefusal } from '../../calls/node-deps.ts';
import type { AddressConflict } from './claim-view.ts';

/** Asks the cloud which resource has an address, as text for people; undefined when the cloud does not answer it. */
type LookUpHolder = (ips: readonly string[], signal: AbortSignal) => Promise<string | undefined>;

type Entry = {
  readonly ips: readonly string[];
  readonly message: string;
  /** Monotonic milliseconds. */
  readonly untilMs: number;
  readonly tries: number;
  readonly holder?: string;
};

/** A conflicting address is requested again after this, later after more. */
const BACKOFF: BackoffSettings = { firstMs: 15_000, maxMs: 600_000, factor: 2, jitter: 0.2 };

/** Claims whose address the cloud refused because another resource has it, and when the address is requested again. */
export class AddressConflicts {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #lookUpHolder: LookUpHolder;
  readonly #entries = new Map<string, Entry>();

  constructor(clock: Clock, random: () => number, lookUpHolder: LookUpHolder) {
    this.#clock = clock;
    this.#random = random;
    this.#lookUpHolder = lookUpHolder;
  }

  /** Number of conflicts now. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Notes that the cloud refused a claim's address, with the cloud's text; `holder`: the resource that has it, where
   * known.
   */
  add(key: string, ips: readonly string[], message: string, holder?: string): void {
    const tries = (this.#entries.get(key)?.tries ?? 0) + 1;
    const untilMs = this.#clock.monotonicMs() + backoffMs(BACKOFF, tries, this.#random());
    this.#entries.set(key, { ips, message, untilMs, tries, ...(holder === undefined ? {} : { holder }) });
  }

  /** Removes the conflict: the claim has its address, or needs none. */
  remove(key: string): void {
    this.#entries.delete(key);
  }

  /** Asks which resource has the address, once for each refusal. Throws only when aborted. */
  async resolveHolder(key: string, signal: AbortSignal): Promise<void> {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.holder !== undefined) return;
    const holder = await this.#lookUpHolder(entry.ips, signal).catch(() => undefined);
    signal.throwIfAborted();
    if (this.#entries.get(key) === entry) this.#entries.set(key, { ...entry, holder: holder ?? '' });
  }

  /** Returns the conflict of a claim; undefined when none is known. */
  of(key: string): AddressConflict | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const { message, untilMs, holder = '' } = entry;
    return { message: holder === '' ? message : `${holder}: ${message}`, waitMs: untilMs - this.#clock.monotonicMs() };
  }
}

/** Dependencies of the look-up of an address's holder. */
type LookUpHolderDeps = {
  readonly cloud: Pick<Cloud, 'subnets'>;
  readonly necs: { values(): Iterable<NecEntry> };
};

const TIMEOUT_MS = 10_000;

/**
 * Makes the look-up that asks the cloud which resource has an address, in the VPC of the nodes. Errors are the cloud's.
 */
export function createLookUpHolder({ cloud, necs }: LookUpHolderDeps): LookUpHolder {
  return async (ips, signal) => {
    const vpcId = [...necs.values()].map(({ decoded }) => decoded?.status?.vpcID).find((id) => id !== undefined);
    if (vpcId === undefined || ips.length === 0) return undefined;
    const context = { priority: 'gc', owner: 'claims', signal, timeoutMs: TIMEOUT_MS } as const;
    const users = await cloud.subnets.usersOf(vpcId, ips, context);
    return users.length === 0 ? undefined : users.map(userText).join(', ');
  };
}

/** Names a resource that has an address, for people. */
export function userText({ ip, resourceType, resourceId }: IpUser): string {
  return `${ip} is of ${resourceType} ${resourceId}`.trim();
}

/** Where a conflict is noted. */
type ConflictDeps = {
  readonly conflicts: AddressConflicts;
  readonly queues: { readonly claims: Pick<WorkQueue, 'add'> };
};

/**
 * Notes that another resource has a claim's address, with the cloud's text, and enqueues the claim; `holder`: the resource,
 * where known.
 */
export function noteConflict(
  { conflicts, queues }: ConflictDeps,
  key: string,
  ips: readonly string[],
  message: string,
  holder?: string,
): void {
  conflicts.add(key, ips, message, holder);
  queues.claims.add(key);
}

/** Error codes of the cloud for an address that another resource has. */
const TAKEN_CODES: readonly CloudError['code'][] = ['ResourceInUse', 'InvalidParameterValue.Duplicate'];

/** Notes that the cloud refused a claim's requested address because another resource has it. */
export function noteRefusal(deps: ConflictDeps, key: string, { ips, code, message }: ClaimRefusal): void {
  if (ips.length === 0 || !TAKEN_CODES.some((one) => code.startsWith(one))) return;
  noteConflict(deps, key, ips, `${code}: ${message}`);
}
