import type { KubeClient } from '../../kube/kube-client.ts';
import { NODES } from '../../kube/resource-types.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import { inTime } from '../../runtime/clock-timers.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { AgentParts } from '../state/ports.ts';
import { countDevices, type Device, type DeviceCount, type DeviceSupply, decideDevices } from './decide-devices.ts';
import type { Kubelet } from './kubelet.ts';
import type { PluginEndpoint } from './plugin-endpoint.ts';
import { createSteadyHealth } from './steady-health.ts';

/** An extended resource that the plugin registers with kubelet. */
type DeviceResource = {
  /** `tke.cloud.tencent.com/eni-ip` */
  readonly name: string;
  /** Prefix of the devices' ids. */
  readonly prefix: string;
  /** Name of our socket beside kubelet's. */
  readonly socketName: string;
  /** Undefined while it is not known; what was reported before stays then. */
  readonly count: () => DeviceSupply | undefined;
  /** Not every node has it: it is registered once the node has a device. Default: false. */
  readonly isOptional?: boolean;
};

/** Dependencies of the device plugin. */
export type DevicePluginDeps = Pick<AgentParts, 'background' | 'clock' | 'log' | 'events'> & {
  readonly kubelet: Kubelet;
  readonly resources: readonly DeviceResource[];
  /** Notified when a count may have changed. */
  readonly changes: readonly ChangeSignal[];
  /** The Node whose status is written when devices become fewer; undefined without an API server. */
  readonly node: { readonly kube: KubeClient; readonly name: string } | undefined;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
  readonly metrics: Pick<Metrics, 'deviceRegistrations' | 'devices'>;
};

/** A running device plugin. */
export type DevicePlugin = {
  /**
   * Writes into the Node's status that no device is allocatable, waits until kubelet has admitted the Pods that were
   * bound before that, and ends the registrations: kubelet fails every Pod that it has to admit while no plugin is
   * registered. Idempotent.
   */
  close(): Promise<void>;
};

/** Pause after a change: changes come in bursts. */
const SETTLE_MS = 200;
/** Poll interval: some of what a count depends on changes without a notification. */
const POLL_MS = 2_000;
/**
 * Timeout of the first question which devices Pods hold. Without an answer the lowest ids are reported: a kubelet that
 * hangs must not delay the registration.
 */
const FIRST_LIST_MS = 500;
/** Timeout of that question later on; only the update of the devices waits for it. */
const LIST_MS = 3_000;
/** Timeout of a write at shutdown: the agent stops even if the API server does not answer. */
const WITHDRAW_MS = 1_000;
const WITHDRAW_TRIES = 3;
/** Time from the decision of a scheduler that has not seen the Node's last change to kubelet's admission of the Pod. */
const BOUND_MS = 1_000;

type DeviceReporter = {
  update(count: DeviceCount): Promise<void>;
  invalidateAllocated(): void;
  /** Keeps schedulers from the node, and waits for what they have bound: kubelet goes on admitting. Never rejects. */
  withdraw(): Promise<void>;
};

/**
 * Reports to kubelet how many addresses the node may have, as devices, and stays registered across restarts of kubelet.
 * Nothing waits for it, and none of its failures ends the agent.
 */
export function startDevicePlugin(deps: DevicePluginDeps): DevicePlugin {
  const shutdown = new AbortController();
  const reporters = new Set<DeviceReporter>();
  const running = Promise.all(
    deps.resources.map((resource) => serveResource(deps, resource, reporters, shutdown.signal)),
  );
  running.catch((error: unknown) => deps.log.error('device plugin ended', { error }));
  const end = async (): Promise<void> => {
    await Promise.all([...reporters].map((reporter) => reporter.withdraw()));
    shutdown.abort('the agent is shutting down');
    await running.catch(() => {});
  };
  let ended: Promise<void> | undefined;
  return {
    close: () => {
      ended ??= end();
      return ended;
    },
  };
}

async function serveResource(
  deps: DevicePluginDeps,
  resource: DeviceResource,
  reporters: Set<DeviceReporter>,
  signal: AbortSignal,
): Promise<void> {
  const { kubelet, clock, log } = deps;
  const watchesChanged = new ChangeSignal(clock);
  const registered = new ChangeSignal(clock);
  const endpoint = kubelet.openEndpoint(resource.socketName, () => watchesChanged.notify());
  const reporter = openDeviceReporter(deps, resource, endpoint, signal);
  reporters.add(reporter);
  const steady = createSteadyHealth();
  let registering: Promise<void> | undefined;
  const register = async (): Promise<void> => {
    try {
      await kubelet.maintainRegistration(
        {
          ...{ endpoint, watchesChanged, clock, log, random: deps.random },
          registration: { resource: resource.name, socketName: resource.socketName },
          attempted: (outcome) => {
            deps.metrics.deviceRegistrations.inc({ outcome });
            if (outcome !== 'registered') return;
            reporter.invalidateAllocated();
            registered.notify();
          },
          failsForLong: (why) =>
            deps.events.report('Warning', 'DevicePlugin', `${resource.name} is not registered with kubelet: ${why}`),
        },
        signal,
      );
    } catch (error) {
      // A bug of ours; the next pass begins again.
      log.error('registration with kubelet ended', { resource: resource.name, error });
      registering = undefined;
    }
  };
  while (!signal.aborted) {
    try {
      const supply = resource.count();
      if (supply !== undefined) {
        const { total, unhealthy } = countDevices(supply);
        const isNone = total === 0 && resource.isOptional === true && registering === undefined;
        if (!isNone) {
          await reporter.update({ total, unhealthy: steady(unhealthy, clock.monotonicMs()) });
          registering ??= register();
        }
      }
    } catch (error) {
      log.error('devices not decided', { resource: resource.name, error });
    }
    await waitForAny([...deps.changes, registered], POLL_MS, signal);
    if (registering !== undefined) await clock.sleep(SETTLE_MS, signal).catch(() => {});
  }
  await registering;
  endpoint.close();
}

/** Holds what was last reported to kubelet, and reports what has changed. */
function openDeviceReporter(
  { background, kubelet, node, clock, log, metrics }: DevicePluginDeps,
  { name, prefix }: DeviceResource,
  endpoint: PluginEndpoint,
  signal: AbortSignal,
): DeviceReporter {
  let count: DeviceCount | undefined;
  let devices: readonly Device[] = [];
  let allocated: ReadonlySet<string> = new Set();
  let isAllocatedStale = true;
  let isWithdrawn = false;
  const readAllocated = async (): Promise<void> => {
    const timeoutMs = count === undefined ? FIRST_LIST_MS : LIST_MS;
    try {
      allocated = await kubelet.listAllocated(name, { timeoutMs, signal });
    } catch (error) {
      log.debug('the devices allocated to Pods cannot be listed', { resource: name, error });
    }
  };
  return {
    invalidateAllocated: () => {
      isAllocatedStale = true;
    },
    update: async (next) => {
      const isSame = count?.total === next.total && count.unhealthy === next.unhealthy;
      if (isSame && !isAllocatedStale) return;
      isAllocatedStale = false;
      await readAllocated();
      const before = { total: devices.length, healthy: healthyOf(devices) };
      const decided = decideDevices({ prefix, count: next, previous: devices, allocated });
      const isChanged = count === undefined || !areSame(decided, devices);
      count = next;
      devices = decided;
      if (!isChanged) return;
      endpoint.sendDevices(devices);
      const healthy = healthyOf(devices);
      metrics.devices.set({ resource: name, health: 'healthy' }, healthy);
      metrics.devices.set({ resource: name, health: 'unhealthy' }, devices.length - healthy);
      log.info('devices', { resource: name, total: devices.length, healthy });
      const isFewer = devices.length < before.total || healthy < before.healthy;
      if (!isFewer || node === undefined || isWithdrawn) return;
      const resource = { resource: name, capacity: devices.length, allocatable: healthy };
      // Kubelet does it too, some seconds later; nothing is lost when this fails.
      const patched = patchNode(node.kube, node.name, resource, signal).catch((error: unknown) => {
        if (!signal.aborted) log.warn('node status not written, kubelet will', { ...resource, error });
      });
      background('writing the status of the node', patched);
    },
    withdraw: async () => {
      isWithdrawn = true;
      if (node === undefined || !endpoint.isWatched() || healthyOf(devices) === 0) return;
      const resource = { resource: name, capacity: devices.length, allocatable: 0 };
      log.info('the node accepts no Pods until another agent runs', { resource: name });
      try {
        // Kubelet may overwrite it with its own number, once in ten seconds: repeat until the Node stays as written.
        let lastVersion: string | undefined;
        for (let tries = 0; tries < WITHDRAW_TRIES; tries++) {
          const patch = (limit: AbortSignal) => patchNode(node.kube, node.name, resource, limit);
          const version = await inTime(clock, WITHDRAW_MS, patch);
          if (version !== undefined && version === lastVersion) return;
          lastVersion = version;
          await clock.sleep(BOUND_MS);
        }
      } catch (error) {
        log.warn('node status not written, kubelet may fail Pods until another agent runs', { ...resource, error });
      }
    },
  };
}

function healthyOf(devices: readonly Device[]): number {
  return devices.filter(({ isHealthy }) => isHealthy).length;
}

function areSame(a: readonly Device[], b: readonly Device[]): boolean {
  return a.length === b.length && a.every(({ id, isHealthy }, i) => b[i]?.id === id && b[i].isHealthy === isHealthy);
}

/** Resolves at the first notification of any, after `ms`, or when `signal` aborts. */
async function waitForAny(signals: readonly ChangeSignal[], ms: number, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const end = (): void => over.abort('over');
  signal.addEventListener('abort', end, { once: true });
  try {
    await Promise.race(signals.map((one) => one.wait(ms, over.signal)));
  } finally {
    end();
    signal.removeEventListener('abort', end);
  }
}

/** The amount of one resource in a Node's status. */
type NodeResource = {
  readonly resource: string;
  /** Number of devices. */
  readonly capacity: number;
  /** Number of devices that may be given to Pods. */
  readonly allocatable: number;
};

/**
 * Writes the amount of a resource into the Node's status; kubelet overwrites it with its own at its next sync.
 * Idempotent. Returns the Node's resourceVersion, which stays the same until the Node is changed.
 * @throws KubeError
 */
async function patchNode(
  kube: KubeClient,
  nodeName: string,
  { resource, capacity, allocatable }: NodeResource,
  signal: AbortSignal,
): Promise<string | undefined> {
  const status = { capacity: { [resource]: String(capacity) }, allocatable: { [resource]: String(allocatable) } };
  const patch = { kind: 'merge', body: { status }, subresource: 'status' } as const;
  const { metadata } = await kube.patch(NODES, { name: nodeName }, patch, signal);
  return metadata.resourceVersion;
}
