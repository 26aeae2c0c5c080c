import type { Monitor, MonitorEvent, MonitorGroup } from '../../netlink/monitor.ts';
import { AF_INET6 } from '../../netlink/uapi/netlink.ts';
import type { Netns } from './netns.ts';

/** What to watch, as of `openMonitor`. */
export type ModelMonitorOptions = {
  readonly groups: readonly MonitorGroup[];
  /** Most events that wait for a slow consumer; then one overrun replaces them. */
  readonly queueCapacity?: number;
  /** How long notifications are gathered before they are told, milliseconds of the clock; default 0. */
  readonly gatherMs?: number;
};

const DEFAULT_CAPACITY = 65_536;
const OVERRUN: MonitorEvent = Object.freeze({ kind: 'overrun' });

/** A monitor whose notifications a test can lose. */
export type ModelMonitor = Monitor & {
  /** Loses what waits: an overrun is told in its place, as of a buffer that was full. */
  lose(): void;
};

/** Watches a namespace: notifications in the order of the changes, no sooner than the caller waits for them. */
export function openModelMonitor(netns: Netns, options: ModelMonitorOptions): ModelMonitor {
  const { groups, queueCapacity = DEFAULT_CAPACITY, gatherMs = 0 } = options;
  const wanted = new Set(groups);
  const gathered: MonitorEvent[] = [];
  let events: MonitorEvent[] = [];
  const waiting: ((result: IteratorResult<MonitorEvent, undefined>) => void)[] = [];
  let isOpen = true;
  let isGathering = false;

  const deliver = (): void => {
    while (waiting.length > 0 && (events.length > 0 || !isOpen)) {
      const event = events.shift();
      waiting.shift()?.(event === undefined ? { done: true, value: undefined } : { done: false, value: event });
    }
  };
  const tell = (event: MonitorEvent): void => {
    if (events.length >= queueCapacity) events = [OVERRUN];
    events.push(event);
    deliver();
  };
  const endGathering = (): void => {
    isGathering = false;
    if (isOpen) for (const event of gathered.splice(0)) tell(event);
  };
  const hear = (event: MonitorEvent): void => {
    const group = groupOf(event);
    if (group === undefined || !wanted.has(group)) return;
    if (gatherMs <= 0) {
      tell(event);
      return;
    }
    gathered.push(event);
    if (isGathering) return;
    isGathering = true;
    netns.machine.later(gatherMs, endGathering);
  };
  netns.listeners.add(hear);
  const close = (): void => {
    isOpen = false;
    netns.listeners.delete(hear);
    deliver();
  };
  return {
    [Symbol.asyncIterator]: () => ({
      next: () =>
        new Promise((resolve) => {
          waiting.push(resolve);
          deliver();
        }),
      return: () => Promise.resolve({ done: true, value: undefined }),
    }),
    lose: () => {
      gathered.length = 0;
      events = [];
      tell(OVERRUN);
    },
    close,
    [Symbol.dispose]: close,
  };
}

function groupOf(event: MonitorEvent): MonitorGroup | undefined {
  switch (event.kind) {
    case 'link':
    case 'neigh':
    case 'nftables':
      return event.kind;
    case 'qdisc':
    case 'filter':
      return 'tc';
    case 'address':
      return event.message.family === AF_INET6 ? 'ipv6-ifaddr' : 'ipv4-ifaddr';
    case 'overrun':
      return undefined;
    default:
      return `${event.message.family === AF_INET6 ? 'ipv6' : 'ipv4'}-${event.kind}`;
  }
}
