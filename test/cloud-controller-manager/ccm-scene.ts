import type { TencentApi } from '../../cloud/tencent/requests.ts';
import { createTencentCloud } from '../../cloud/tencent/tencent-cloud.ts';
import { CLOUD_TURNS, type RunningCcm, startCcm } from '../../cloud-controller-manager/ccm.ts';
import { readCcmConfig } from '../../cloud-controller-manager/config/ccm-config.ts';
import type { ControllerName } from '../../cloud-controller-manager/config/controllers-value.ts';
import type { CcmConfig } from '../../cloud-controller-manager/config/options.ts';
import type { Controller } from '../../cloud-controller-manager/term/controllers.ts';
import type { KubeClient, KubeObject } from '../../kube/kube-client.ts';
import { silentLogger } from '../../runtime/log.ts';
import { serviceAccountUser } from '../../sim/kube-api/auth/tokens.ts';
import { type InProcessApi, startInProcessApi } from '../../sim/kube-api/in-process.ts';
import { seedClusterRole } from '../../sim/kube-api/seed-roles.ts';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { CloudHost } from '../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../sim/vpc/api/in-process.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const CLOUD = {
  vpcId: 'vpc-00000001',
  subnets: [{ subnetId: 'subnet-node0001', zone: 'ap-guangzhou-3', cidr: '10.0.0.0/16' }],
} as const;
const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1', isNamespaced: false };
const CLUSTER_ROLES = { ...RBAC, plural: 'clusterroles', kind: 'ClusterRole' };
const BINDINGS = { ...RBAC, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding' };
const ACCOUNT = 'tke-cloud-controller-manager';

/** A rule of a role. */
type Rule = { readonly apiGroups: readonly string[]; readonly resources: readonly string[]; readonly verbs: string[] };

/** Reads settings from flags. */
export function ccmConfig(...flags: readonly string[]): CcmConfig {
  const argv = ['--region=ap-guangzhou', '--metrics-address=', ...flags];
  const outcome = readCcmConfig({ argv, env: {}, readFile: () => '' });
  if (outcome.kind !== 'run') throw new Error(`got ${outcome.kind}`);
  return outcome.config;
}

/** When a controller of a replica ran; `toMs` is infinite while it does. */
export type Run = {
  readonly replica: string;
  readonly controller: ControllerName;
  readonly fromMs: number;
  toMs: number;
};

/** What is put around the calls of a replica. */
type CallWrappers = {
  readonly kube: (client: KubeClient) => KubeClient;
  readonly api: (api: TencentApi) => TencentApi;
};
const AS_THEY_ARE: CallWrappers = { kube: (client) => client, api: (api) => api };

/** A cluster in this process, on a virtual clock, with the published role. */
type CcmScene = {
  readonly clock: VirtualClock;
  readonly host: CloudHost;
  readonly server: InProcessApi;
  readonly admin: KubeClient;
  /** When controllers ran that do nothing but run; see `start`. */
  readonly runs: readonly Run[];
  /** Starts a replica; by default its controllers only write down when they run, and have the rights of the real ones. */
  start(
    name: string,
    flags?: readonly string[],
    controllers?: readonly Controller[],
    calls?: CallWrappers,
  ): Promise<RunningCcm>;
  /** Changes the rules of the role. */
  setRules(change: (rules: readonly Rule[]) => readonly Rule[]): Promise<void>;
  /** The messages of events with a reason. */
  events(reason: string): readonly string[];
};

const NODES_RIGHTS = ['list', 'watch', 'patch'].map((verb) => ({ verb, resource: 'nodes' }));

/** What may differ from one cluster to the next. */
export type SceneOptions = {
  /** A cluster that shares clock and cloud with this one; default: none does. */
  readonly beside?: Pick<CcmScene, 'clock' | 'host'>;
  /** Default: random uids. */
  readonly newUid?: () => string;
};

/** Makes the cluster. */
export async function ccmScene({ beside, newUid }: SceneOptions = {}): Promise<CcmScene> {
  const clock = beside?.clock ?? new VirtualClock();
  const host = beside?.host ?? new CloudHost(CLOUD, clock, { seed: 5, latencyMs: [20, 60] });
  const options = { clock, latencyMs: 4, random: seededRandom(3), authorization: 'rbac' } as const;
  const server = startInProcessApi({ ...options, ...(newUid === undefined ? {} : { newUid }) });
  const admin = server.client();
  const role = seedClusterRole(ACCOUNT) as KubeObject & { readonly rules: readonly Rule[] };
  await clock.run(admin.create(CLUSTER_ROLES, role));
  const binding = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: ACCOUNT },
    roleRef: { apiGroup: RBAC.group, kind: 'ClusterRole', name: role.metadata.name },
    subjects: [{ kind: 'ServiceAccount', namespace: 'kube-system', name: ACCOUNT }],
  };
  await clock.run(admin.create(BINDINGS, binding));
  const runs: Run[] = [];
  const recording = (replica: string): readonly Controller[] => {
    const one = (name: ControllerName, rights: Controller['rights']): Controller => ({
      name,
      rights,
      run: async (_deps, signal) => {
        const run: Run = { replica, controller: name, fromMs: clock.monotonicMs(), toMs: Number.POSITIVE_INFINITY };
        runs.push(run);
        if (!signal.aborted) await new Promise((end) => signal.addEventListener('abort', end, { once: true }));
        run.toMs = clock.monotonicMs();
      },
    });
    return [
      one('cloud-node-controller', [...NODES_RIGHTS, { verb: 'patch', resource: 'nodes', subresource: 'status' }]),
      one('cloud-node-lifecycle-controller', [...NODES_RIGHTS, { verb: 'delete', resource: 'nodes' }]),
    ];
  };
  let serial = 0;
  return {
    clock,
    host,
    server,
    admin,
    runs,
    start: async (name, flags = [], controllers = recording(name), calls = AS_THEY_ARE) => {
      const random = seededRandom(++serial);
      const cloud = createTencentCloud({ api: calls.api(createInProcessApi(host)), clock, random }, CLOUD_TURNS);
      const user = serviceAccountUser('kube-system', ACCOUNT);
      const kube = calls.kube(server.client({ user, userAgent: name }));
      const runtime = { clock, log: silentLogger, random, kube, cloud, release: 'test', identity: name, controllers };
      return await startCcm(ccmConfig(...flags), runtime);
    },
    setRules: async (change) => {
      const rules = change(role.rules);
      await clock.run(admin.patch(CLUSTER_ROLES, { name: role.metadata.name }, { kind: 'merge', body: { rules } }));
    },
    events: (reason) =>
      server.objects('events').flatMap((event) => (event['reason'] === reason ? [String(event['message'])] : [])),
  };
}
