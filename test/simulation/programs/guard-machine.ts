import type { HostPorts, OpenedKernel } from '../../../agent/host-ports.ts';
import type { Journal } from '../../../agent/journal/journal-content.ts';
import type { InNetns, NodeKernel } from '../../../dataplane/kernel.ts';
import type { Monitor } from '../../../netlink/monitor.ts';
import type { Rtnetlink } from '../../../netlink/rtnetlink.ts';
import type { Sysctl } from '../../../sysctl/sysctl.ts';
import type { Life } from '../life.ts';
import { textOf } from '../record.ts';

/** Told of each change that an agent makes on its machine, before it is made: `link.addPair`, `putLease`. */
type Changes = (call: string, values: readonly unknown[]) => void;

/** Methods that change nothing. */
const READS = /^journal\.(?:load|verify)$|\.(?:get|list|find|read|canonical|close)$/;

/**
 * A machine as one life of an agent has it. Each journal transaction is a point before it and one after it; each request to the
 * kernel and each setting is a point before it. Once the life is dead it changes nothing, and reads nothing.
 */
export function guardMachine(ports: HostPorts, life: Life, onChange: Changes): HostPorts {
  const reach: Reach = {
    read: () => life.throwIfDead(),
    change: (call, values) => {
      life.passNow('before', call);
      onChange(call, values);
    },
    changed: (call) => life.passNow('after', call),
    take: (arriving) => life.take(arriving),
  };
  const { namespaces, conntrack } = ports;
  return {
    ...ports,
    openJournal: () => guard<Journal>('journal', ports.openJournal(), { ...reach, isTransaction: true }),
    openKernel: () => guardOpened(ports.openKernel(), reach),
    openMonitor: (groups) => guardMonitor(ports.openMonitor(groups), life),
    namespaces: {
      ...guard('namespaces', namespaces, { ...reach, change: reach.read }),
      enter: (netns) => guardInside(namespaces.enter(netns), reach),
    },
    conntrack: guard('conntrack', conntrack, reach),
    planned: (node, enis) => {
      if (!life.isDead) ports.planned(node, enis);
    },
  };
}

type Reach = {
  readonly read: () => void;
  readonly change: (call: string, values: readonly unknown[]) => void;
  readonly changed: (call: string) => void;
  readonly take: <T>(arriving: Promise<T>) => Promise<T>;
  readonly isTransaction?: boolean;
};

function guardOpened({ kernel, ownWrites }: OpenedKernel, reach: Reach): OpenedKernel {
  const guarded: NodeKernel = {
    rtnetlink: guardRtnetlink(kernel.rtnetlink, reach),
    sysctl: guardSysctl(kernel.sysctl, reach),
    nft: guard('nft', kernel.nft, reach),
    enter: (netns) => {
      reach.read();
      return guardInside(kernel.enter(netns), reach);
    },
  };
  return { kernel: guarded, ownWrites };
}

function guardInside(inside: InNetns, reach: Reach): InNetns {
  return {
    ...{ rtnetlink: guardRtnetlink(inside.rtnetlink, reach), sysctl: guardSysctl(inside.sysctl, reach) },
    ...{ packetLinks: inside.packetLinks, [Symbol.dispose]: () => inside[Symbol.dispose]() },
  };
}

function guardRtnetlink(rtnetlink: Rtnetlink, reach: Reach): Rtnetlink {
  return {
    link: guard('link', rtnetlink.link, reach),
    address: guard('address', rtnetlink.address, reach),
    route: guard('route', rtnetlink.route, reach),
    rule: guard('rule', rtnetlink.rule, reach),
    neigh: guard('neigh', rtnetlink.neigh, reach),
    qdisc: guard('qdisc', rtnetlink.qdisc, reach),
    trafficFilter: guard('filter', rtnetlink.trafficFilter, reach),
    get portid() {
      return rtnetlink.portid;
    },
    get capabilities() {
      return rtnetlink.capabilities;
    },
    execute: (requests, { stopOnError = false } = {}) => {
      const outcomes: ReturnType<Rtnetlink['execute']>[number][] = [];
      let isOver = false;
      for (const request of requests) {
        if (isOver) {
          outcomes.push({ kind: 'skipped' });
          continue;
        }
        reach.change(`${request.object}.${request.verb}`, [request.spec]);
        const [outcome = { kind: 'ok' }] = rtnetlink.execute([request]);
        outcomes.push(outcome);
        isOver = stopOnError && outcome.kind === 'error';
      }
      return outcomes;
    },
    skipUnreadable: (run) => rtnetlink.skipUnreadable(run),
    close: () => rtnetlink.close(),
    [Symbol.dispose]: () => rtnetlink.close(),
  };
}

/** One that has its value already is no change. */
function guardSysctl(sysctl: Sysctl, reach: Reach): Sysctl {
  const set: Sysctl['set'] = (key, value) => {
    if (sysctl.get(key) === value) return 'unchanged';
    reach.change('setting', [key, value]);
    return sysctl.set(key, value);
  };
  return {
    get: (key) => {
      reach.read();
      return sysctl.get(key);
    },
    find: (key) => {
      reach.read();
      return sysctl.find(key);
    },
    set,
    setAll: (pairs) =>
      pairs.map(({ key, value, isOptional }) => {
        if (isOptional === true && sysctl.find(key) === undefined) return 'unchanged';
        return set(key, value);
      }),
  };
}

/** Events of a machine whose agent is dead reach nobody. */
function guardMonitor(monitor: Monitor, life: Life): Monitor {
  life.signal.addEventListener('abort', () => monitor.close(), { once: true });
  async function* follow() {
    const reader = monitor[Symbol.asyncIterator]();
    for (;;) {
      const next = await life.take(reader.next());
      if (next.done === true) return;
      yield next.value;
    }
  }
  return Object.assign(Object.create(monitor) as Monitor, {
    [Symbol.asyncIterator]: follow,
    close: () => monitor.close(),
    [Symbol.dispose]: () => monitor.close(),
  });
}

function guard<S extends object>(name: string, service: S, reach: Reach): S {
  return new Proxy(service, {
    get: (target, verb) => {
      const method: unknown = Reflect.get(target, verb, target);
      if (typeof method !== 'function' || typeof verb !== 'string') return method;
      return (...values: unknown[]): unknown => {
        const call = `${name}.${verb}`;
        const isRead = READS.test(call);
        const isChange = !isRead && !isEmpty(values);
        if (isChange) reach.change(call, values);
        else reach.read();
        const outcome: unknown = Reflect.apply(method, target, values);
        if (outcome instanceof Promise) return reach.take(outcome);
        if (isChange && reach.isTransaction === true) reach.changed(call);
        return outcome;
      };
    },
  });
}

/** Nothing is changed by a list of nothing. */
function isEmpty([first]: readonly unknown[]): boolean {
  return Array.isArray(first) && first.length === 0;
}

/** Renders a change as a line of the log. */
export function changeText(call: string, values: readonly unknown[]): string {
  return `${call} ${textOf(values)}`;
}
