import type { AttachCommand } from '../../../agent/attachment/attach-command.ts';
import { NO_EVENTS } from '../../../agent/events/node-events.ts';
import { openJournal } from '../../../agent/journal/journal.ts';
import type { Supply } from '../../../agent/journal/supply.ts';
import { createMetrics } from '../../../agent/observability/metrics.ts';
import { NO_RESERVATIONS } from '../../../agent/pod-cidr/host-local-files.ts';
import { NO_OPERATION_LOG } from '../../../agent/recorder/operation-log.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import type { PodWiring, UseCaseDeps, WiredLink } from '../../../agent/state/ports.ts';
import type { BridgeNetwork, PodNetwork } from '../../../dataplane/network.ts';
import type { OpenNetns } from '../../../netlink/netns.ts';
import { runInBackground } from '../../../runtime/background.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { KeyedMutex } from '../../../runtime/keyed-mutex.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { createTempDir } from '../../support/temp-dir.ts';

/** The bridge of a node that is set up. */
export const TEST_BRIDGE: BridgeNetwork = { name: 'cbr0', ifindex: 99, isPresent: true, mtu: 1500, wiring: 'bridge' };

/** A clock that a test moves; `sleep` takes no real time. */
export class TestClock implements Clock {
  #nowMs = 1_000_000;
  #wallAheadMs = 0;

  nowMs(): number {
    return this.#nowMs + this.#wallAheadMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  bootMs(): number {
    return this.#nowMs;
  }

  async sleep(ms: number): Promise<void> {
    this.#nowMs += ms;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
  }

  /** Makes the wall clock jump, as NTP or a person does. */
  setWallClock(ms: number): void {
    this.#wallAheadMs = ms - this.#nowMs;
  }
}

/** A kernel that keeps which Pods are wired, and can be told to refuse. */
class TestWiring implements PodWiring {
  /** Wired Pods by alias. */
  readonly pods = new Map<string, PodNetwork>();
  refusal: Error | undefined;
  unwireRefusal: Error | undefined;
  differences: readonly string[] = [];
  /** Runs while a Pod is being looked at, before the commit. */
  duringCheck: () => void = () => {};
  #ifindex = 10;

  wire(pod: PodNetwork): WiredLink | undefined {
    if (this.refusal !== undefined) throw this.refusal;
    this.#ifindex += 1;
    this.pods.set(pod.alias, pod);
    return pod.kind === 'ipam' ? undefined : { ifindex: this.#ifindex, name: pod.hostVeth.name };
  }

  async unwire(pod: PodNetwork): Promise<void> {
    if (this.unwireRefusal !== undefined) throw this.unwireRefusal;
    this.pods.delete(pod.alias);
  }

  isLinked(): boolean {
    return false;
  }

  async updateRoutes(): Promise<readonly string[]> {
    return [];
  }

  verify(pod: PodNetwork): readonly string[] {
    this.duringCheck();
    return this.pods.has(pod.alias) ? this.differences : [`${pod.alias} is not wired`];
  }

  async check(pod: PodNetwork): Promise<readonly string[]> {
    return this.pods.has(pod.alias) ? this.differences : [`${pod.alias} is not wired`];
  }

  /** Addresses that are wired now, sorted. */
  get ips(): readonly string[] {
    return [...this.pods.values()].flatMap(({ ips }) => ips).sort();
  }
}

/** A node with one ENI and a real journal in a folder of its own. */
export type TestNode = {
  readonly deps: UseCaseDeps;
  readonly clock: TestClock;
  readonly wiring: TestWiring;
  readonly state: NodeState;
  readonly flushed: string[];
  /** Paths of namespaces that are gone. */
  readonly absent: Set<string>;
  /** Addresses that another program has wired. */
  readonly wired: Set<string>;
  close(): void;
};

/** A supply of one ENI with `ipCount` IPv4 addresses from 10.0.0.10 on. */
export function supplyOf(ipCount: number, epoch = 1): Supply {
  return {
    nodeName: 'n1',
    epoch,
    warm: { min: 5, max: 5 },
    enis: [
      {
        eniId: 'eni-1',
        mac: '02:00:00:00:00:01',
        primary: [{ ip: '10.0.0.2', family: 4, gateway: '10.0.0.1', subnetCidr: '10.0.0.0/24' }],
        attached: true,
        draining: false,
        addresses: Array.from({ length: ipCount }, (_, index) => ({
          ip: `10.0.0.${10 + index}`,
          family: 4 as const,
          assignmentId: `asg-${index}`,
          state: 'assigned' as const,
        })),
      },
    ],
  };
}

/** Makes a node that could serve an ADD. */
export function createTestNode(ipCount: number): TestNode {
  const dir = createTempDir('use-cases');
  const clock = new TestClock();
  const journal = openJournal(dir.join('journal.db'), { clock, bootId: 'boot' });
  const state = new NodeState(systemClock);
  const record = { eniId: 'eni-1', mac: '02:00:00:00:00:01', table: 4007, slot: 1 };
  journal.putEni(record);
  state.eniRecords.set('eni-1', record);
  state.enis.set('eni-1', {
    ...record,
    ifindex: 7,
    ifname: 'eth1',
    mtu: 1500,
    addresses: [{ ip: '10.0.0.2', gateway: '10.0.0.1' }],
  });
  state.readyEnis.add('eni-1');
  state.supply = supplyOf(ipCount);
  state.pool.applySupply(state.supply);
  const wiring = new TestWiring();
  const flushed: string[] = [];
  const absent = new Set<string>();
  const wired = new Set<string>();
  const deps: UseCaseDeps = {
    ...{ background: runInBackground, clock, journal, state, wiring },
    randomBytes: (byteCount) => crypto.getRandomValues(new Uint8Array(byteCount)),
    log: silentLogger,
    metrics: createMetrics(),
    mutex: new KeyedMutex(),
    sandboxes: {
      ...{ open: openedNetns, find: () => undefined, own: () => openedNetns('') },
      isAbsent: (path) => absent.has(path),
    },
    strangers: { isWired: (ip) => wired.has(ip), find: (ips) => new Set([...ips].filter((ip) => wired.has(ip))) },
    operationLog: NO_OPERATION_LOG,
    conntrack: {
      flush: async (ips) => void flushed.push(...ips),
      flushOrThrow: async (ips) => void flushed.push(...ips),
    },
    settings: {
      ipCooldownMs: 120_000,
      registeredWaitMs: 7_200_000,
      addWaitMs: 0,
      forceAfterMs: 0,
      podMtu: 0,
      delegateConfDir: '',
      isCiliumPool: false,
    },
    readPendingInput: async () => {},
    demandChanged: () => {},
    linkMade: () => {},
    events: NO_EVENTS,
    prepareBridge: async () => TEST_BRIDGE,
    reservations: NO_RESERVATIONS,
    ciliumChain: () => undefined,
  };
  const close = (): void => {
    journal.close();
    dir.close();
  };
  return { deps, clock, wiring, state, flushed, absent, wired, close };
}

/** The modelled kernel never enters a namespace. */
function openedNetns(path: string): OpenNetns {
  return { fd: -1, path, close: () => {}, [Symbol.dispose]: () => {} };
}

/** An ADD of the container `c<number>`. */
export function addOf(number: number, change: Partial<AttachCommand> = {}): AttachCommand {
  return {
    plugin: 'route-eni',
    containerId: `c${number}`,
    ifName: 'eth0',
    netns: `/run/netns/n${number}`,
    network: 'net',
    podNamespace: 'default',
    podName: `p${number}`,
    podUid: '',
    mtu: 0,
    disableIpv6: false,
    uplink: false,
    deadlineAtMs: 0,
    ...change,
  };
}

/** A signal that never aborts. */
export const PATIENT = new AbortController().signal;
