import { familyOf } from '../../dataplane/ip-prefix.ts';
import { isOurTable, OUR_PRIORITIES, RTPROT_TKE_ENI } from '../../dataplane/numbers.ts';
import type { Operation } from '../../dataplane/operation.ts';
import type { MonitorEvent } from '../../netlink/monitor.ts';
import { IFF_UP } from '../../netlink/uapi/if-link.ts';
import { OTHER_NFTABLES, objectOfEvent } from './object-of.ts';
import type { OwnWrites } from './own-writes.ts';

/** Most objects that are remembered of each kind; the oldest gives way. */
const MAX_OBJECTS = 4_096;
/** So long a notification explains a difference, milliseconds. Passes follow notifications within a second. */
const MARK_MS = 10_000;
/** So long after lost notifications each object that we wrote counts as changed by others, milliseconds. */
const LOST_MS = 1_000;
/** So long after its link went down an IPv6 address is missing because the kernel removed it, milliseconds. */
const LINK_DOWN_MS = 1_000;

/**
 * Knows which objects another process has changed, by the sender that notifications name. What the kernel does itself
 * (routes that vanish with a link or an address) is no other process. Times are monotonic milliseconds.
 */
export class ForeignChanges {
  readonly #own: Pick<OwnWrites, 'isOwn'>;
  readonly #changedAtMs = new Map<string, number>();
  readonly #doneAtMs = new Map<string, number>();
  readonly #downAtMs = new Map<number, number>();
  #lostAtMs = Number.NEGATIVE_INFINITY;

  constructor(own: Pick<OwnWrites, 'isOwn'>) {
    this.#own = own;
  }

  /** Takes note of a notification. */
  note(event: MonitorEvent, nowMs: number): void {
    if (event.kind === 'overrun') this.#lostAtMs = nowMs;
    if (event.kind === 'link' && (event.message.flags & IFF_UP) === 0)
      remember(this.#downAtMs, event.message.ifindex, nowMs);
    if (!isAttributed(event) || this.#own.isOwn(event)) return;
    const object = objectOfEvent(event);
    const objects = [...(object === undefined ? [] : [object]), ...(event.kind === 'nftables' ? OTHER_NFTABLES : [])];
    // The first change counts: it ended what the last repair made.
    for (const changed of objects) if (!this.#changedAtMs.has(changed)) remember(this.#changedAtMs, changed, nowMs);
  }

  /** Takes note of an operation that succeeded: what it made is ours from now on. */
  noteDone(object: string, nowMs: number): void {
    this.#changedAtMs.delete(object);
    remember(this.#doneAtMs, object, nowMs);
  }

  /** Takes note of what a pass found: changes of all other objects until then made no difference. */
  noteDifferent(objects: ReadonlySet<string>): void {
    for (const object of this.#changedAtMs.keys()) if (!objects.has(object)) this.#changedAtMs.delete(object);
  }

  /**
   * Returns when another process made `operation` on `object` necessary: the time of its notification, or `nowMs` for what
   * is not notified. Undefined when none did.
   */
  changedAtMs(object: string, operation: Operation, nowMs: number): number | undefined {
    return this.#changedAtMs.get(object) ?? (this.#isUntoldChange(object, operation, nowMs) ? nowMs : undefined);
  }

  #isUntoldChange(object: string, operation: Operation, nowMs: number): boolean {
    const wasOurs = this.#doneAtMs.has(object);
    if (wasOurs && nowMs - this.#lostAtMs < LOST_MS) return true;
    switch (operation.kind) {
      case 'set-link':
      case 'set-port':
      case 'make-bridge':
      case 'set-sysctl':
      case 'replace-neigh':
      case 'delete-neigh':
      case 'attach-filter':
      case 'detach-filter':
        // The kernel names no sender, and changes none of these itself once they are set.
        return wasOurs;
      case 'add-address':
      case 'delete-address':
        return wasOurs && familyOf(operation.address.prefix) === 6 && !this.#wentDown(operation.address.ifindex, nowMs);
      default:
        return false;
    }
  }

  /** Forgets what explains no difference any more. */
  removeExpired(nowMs: number): void {
    for (const map of [this.#changedAtMs, this.#downAtMs] as readonly Map<unknown, number>[])
      for (const [key, atMs] of map) if (nowMs - atMs >= MARK_MS) map.delete(key);
  }

  #wentDown(ifindex: number, nowMs: number): boolean {
    return nowMs - (this.#downAtMs.get(ifindex) ?? Number.NEGATIVE_INFINITY) < LINK_DOWN_MS;
  }
}

/** Reports whether the kernel names the sender of this change, another process than the kernel made it, and it may be of ours. */
function isAttributed(event: MonitorEvent): boolean {
  switch (event.kind) {
    case 'nftables':
      return true;
    case 'rule':
      return (
        event.portid !== 0 &&
        (event.message.protocol === RTPROT_TKE_ENI || OUR_PRIORITIES.includes(event.message.priority))
      );
    case 'route':
      return event.portid !== 0 && (event.message.protocol === RTPROT_TKE_ENI || isOurTable(event.message.table));
    case 'address':
      return event.portid !== 0;
    default:
      return false;
  }
}

function remember<K>(map: Map<K, number>, key: K, atMs: number): void {
  map.delete(key);
  const oldest = map.keys().next();
  if (map.size >= MAX_OBJECTS && oldest.done !== true) map.delete(oldest.value);
  map.set(key, atMs);
}
