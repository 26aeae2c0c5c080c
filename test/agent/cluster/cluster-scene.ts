import { type ClusterConnection, openCluster } from '../../../agent/cluster.ts';
import { readAgentConfig } from '../../../agent/config/agent-config.ts';
import type { NodeEvents } from '../../../agent/events/node-events.ts';
import { openJournal } from '../../../agent/journal/journal.ts';
import type { Journal } from '../../../agent/journal/journal-content.ts';
import type { Supply } from '../../../agent/journal/supply.ts';
import { createMetrics } from '../../../agent/observability/metrics.ts';
import { NO_OPERATION_LOG, type OperationLog } from '../../../agent/recorder/operation-log.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { acceptSupply } from '../../../agent/supply/accept-supply.ts';
import { trackAgentCalls } from '../../../agent/supply/api-failures.ts';
import { refuseSupply } from '../../../agent/supply/refuse-supply.ts';
import type { NodeEniConfigSpec, NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import { CallFailures } from '../../../kube/call-failures.ts';
import { updateGuarded } from '../../../kube/guarded-update.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { KubeError } from '../../../kube/kube-error.ts';
import { NODE_ENI_CONFIGS } from '../../../kube/resource-types.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { type InProcessApi, startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { installKinds } from '../../../sim/kube-api/install-kinds.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { sampleLease } from '../pool/supply-sample.ts';

/** What `kubectl get nec n1 -o json` would show, as far as tests look. */
type NecObject = KubeObject & { readonly spec?: NodeEniConfigSpec; readonly status?: NodeEniConfigStatus };

/** One life of the agent's cluster side. */
export type AgentLife = {
  readonly state: NodeState;
  readonly journal: Journal;
  readonly cluster: ClusterConnection;
  readonly told: string[];
  /** What those who watch are told: 'kind: text'. */
  readonly signs: string[];
  isReady: boolean;
  /** Lets the API server refuse a call that no part of this scene makes. */
  refused(call: string): void;
  /** What the metric `tke_eni_missing_right` says of a call; undefined where it says nothing. */
  missingRight(call: string): Promise<number | undefined>;
  /** Ends as SIGKILL would: nothing is finished. */
  kill(): void;
};

/** A node's object in an API server, a journal that outlives agents, and the test as ipamd and people. */
export type ClusterScene = {
  readonly clock: VirtualClock;
  readonly api: InProcessApi;
  readonly kube: KubeClient;
  /** `flags` are added to those that it needs. */
  startAgent(flags?: readonly string[]): AgentLife;
  nec(): NecObject | undefined;
  /** Writes as ipamd does: the status changes and its epoch grows. */
  supply(change: (status: NodeEniConfigStatus) => NodeEniConfigStatus): Promise<void>;
  /** Writes as a person does. */
  edit(change: (object: KubeObject) => KubeObject): Promise<void>;
  /** Lets everything that is due happen, within `ms`. */
  pass(ms?: number): Promise<void>;
  loseJournal(): void;
  close(): void;
};

const NAME = 'n1';
const BARE = { apiVersion: 'networking.tke.cloud.tencent.com/v1', kind: 'NodeENIConfig', metadata: { name: NAME } };

/** An attached ENI `eni-<letter>` with the given last parts of addresses; assignment ids are `a-<ip>`. */
export function eniOf(letter: 'a' | 'b', lasts: readonly number[]) {
  const subnet = letter === 'a' ? 1 : 2;
  return {
    eniID: `eni-${letter}`,
    mac: `02:00:00:00:00:0${subnet}`,
    primaryIP: `10.0.${subnet}.2`,
    gateway: `10.0.${subnet}.1`,
    subnetID: `subnet-${letter}`,
    subnetCIDR: `10.0.${subnet}.0/24`,
    state: 'Attached' as const,
    addresses: lasts.map((last) => {
      const ip = `10.0.${subnet}.${last}`;
      return { ip, assignmentID: `a-${ip}`, state: 'Assigned' as const };
    }),
  };
}

/** Starts the scene, with an object that has no status yet unless told otherwise. */
export async function openClusterScene({ hasNec = true }: { readonly hasNec?: boolean } = {}): Promise<ClusterScene> {
  const clock = new VirtualClock();
  const api = startInProcessApi({ clock });
  const kube = api.client({ userAgent: 'test' });
  const folder = createTempDir('cluster');
  await installKinds(kube);
  if (hasNec) await kube.create(NODE_ENI_CONFIGS, BARE);
  let journals = 0;
  const lives: AgentLife[] = [];
  const edit = async (change: (object: KubeObject) => KubeObject): Promise<void> => {
    await clock.run(updateGuarded(kube, NODE_ENI_CONFIGS, { name: NAME }, change));
    await clock.advance(1_000);
  };
  return {
    ...{ clock, api, kube, edit },
    startAgent: (flags = []) => {
      const life = startLife(clock, api, folder.join(`journal-${journals}.db`), flags);
      lives.push(life);
      return life;
    },
    nec: () => api.objects('nodeeniconfigs', 'networking.tke.cloud.tencent.com')[0] as unknown as NecObject | undefined,
    supply: (change) =>
      edit((object) => {
        const status = (object as NecObject).status ?? {};
        return { ...object, status: { ...change(status), supplyEpoch: (status.supplyEpoch ?? 0) + 1 } };
      }),
    pass: (ms = 1_000) => clock.advance(ms),
    loseJournal: () => {
      journals++;
    },
    close: () => {
      for (const life of lives) life.kill();
      folder.close();
    },
  };
}

/** Starts an agent's cluster side on a journal; the caller kills it. */
export function startLife(clock: VirtualClock, api: InProcessApi, path: string, flags: readonly string[]): AgentLife {
  const hasSource = flags.some((flag) => flag.startsWith('--supply-source='));
  const outcome = readAgentConfig({
    argv: [...(hasSource ? [] : ['--supply-source=cluster']), `--node-name=${NAME}`, ...flags],
    env: {},
    readFile: () => '',
  });
  if (outcome.kind !== 'run') throw new Error('settings of the test are wrong');
  const journal = openJournal(path, { clock, bootId: 'boot' });
  const state = new NodeState(clock, outcome.config.role);
  state.restore(journal.load());
  const metrics = createMetrics();
  const told: string[] = [];
  const signs: string[] = [];
  const operationLog: OperationLog = {
    ...NO_OPERATION_LOG,
    report: (kind, render) => {
      const { text, isFailure = false } = render();
      signs.push(`${kind}${isFailure ? ' failed' : ''}: ${text}`);
    },
  };
  const events: NodeEvents = {
    report: (_type, reason, message) => void told.push(`${reason}: ${message}`),
  };
  const apiFailures = new CallFailures(clock);
  const cluster = openCluster({
    ...{ background: runInBackground, state, journal, metrics, operationLog },
    config: outcome.config,
    ...{ clock, events, apiFailures, log: silentLogger },
    randomBytes: (byteCount) => crypto.getRandomValues(new Uint8Array(byteCount)),
    random: () => 0.5,
    kube: trackAgentCalls(api.client({ userAgent: 'agent' }), apiFailures),
  });
  const down = new AbortController();
  const noLinks = { links: [], addresses: [], mainRoutes: [] };
  const refuse = (supply: Supply) => refuseSupply(supply, noLinks);
  const base = { state, journal, metrics, operationLog, log: silentLogger };
  const deps = { ...base, refuse, nodeName: NAME, supplyChanged: () => {} };
  cluster.supply.subscribe((event) => acceptSupply({ ...deps, events, life: cluster.life }, event));
  const life: AgentLife = {
    ...{ state, journal, cluster, told, signs },
    isReady: true,
    refused: (call) =>
      apiFailures.settled(call, new KubeError({ code: 'FORBIDDEN', request: call, text: 'no', status: 403 })),
    missingRight: async (call) => {
      const all = await metrics.registry.getMetricsAsJSON();
      const found = all.find(({ name }) => name === 'tke_eni_missing_right') as
        | { readonly values: readonly { readonly value: number; readonly labels: { readonly right?: string } }[] }
        | undefined;
      return found?.values.find(({ labels }) => labels.right === call)?.value;
    },
    kill: () => {
      down.abort('killed');
      cluster.close();
      journal.close();
    },
  };
  void cluster.publish(() => life.isReady, down.signal);
  return life;
}

/** Gives the Pod `name` an address, as an ADD does; returns it. Undefined when there is none. */
export function leaseTo({ state, journal }: AgentLife, name: string, nowMs: number): string | undefined {
  const result = state.pool.lease({ key: `${name}/eth0`, families: [4], nowMs });
  const address = result.kind === 'leased' ? result.addresses[0] : undefined;
  if (address === undefined) return undefined;
  const lease = sampleLease(name, address.eniId, [address.ip], { podUid: `uid-${name}`, podName: name });
  journal.putLease(lease);
  state.leases.set(`${name}/eth0`, lease);
  state.demandChanged.notify();
  return address.ip;
}

/** Ends the lease of the Pod `name`; its address is free at once. */
export function endLease({ state, journal }: AgentLife, name: string, nowMs: number): void {
  state.pool.release({ key: `${name}/eth0`, nowMs, cooldownMs: 0 });
  journal.eraseLease(`${name}/eth0`, []);
  state.leases.delete(`${name}/eth0`);
  state.demandChanged.notify();
}
