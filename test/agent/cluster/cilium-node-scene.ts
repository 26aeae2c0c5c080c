import type { KubeObject } from '../../../kube/kube-client.ts';
import { CILIUM_NODES, CUSTOM_RESOURCE_DEFINITIONS } from '../../../kube/resource-types.ts';
import { recordOf } from '../../../runtime/json.ts';
import { CILIUM_NODE_DEFINITION } from '../../support/cilium-node-definition.ts';
import { type AgentLife, type ClusterScene, openClusterScene } from './cluster-scene.ts';

/** A pool as a person writes it. */
type PoolText = Readonly<Record<string, { readonly owner?: string; readonly resource?: string }>>;

/** A cluster with the CiliumNode of one node, the agent that serves it, and the test as operator. */
export type CiliumNodeScene = Omit<ClusterScene, 'startAgent'> & {
  startAgent(flags?: readonly string[]): AgentLife;
  create(pool: PoolText): Promise<void>;
  /** Replaces the pool. */
  setPool(pool: PoolText): Promise<void>;
  /** Merges fields into `status.ipam`. */
  patchStatus(ipam: object): Promise<void>;
  /** Marks addresses for release. */
  mark(...ips: readonly string[]): Promise<void>;
  status(): Readonly<Record<string, unknown>>;
  pool(): PoolText;
  used(): PoolText;
  releases(): Readonly<Record<string, string>>;
};

/** Opens a cluster with the definition of CiliumNode and no object of it. */
export async function openCiliumNodeScene(): Promise<CiliumNodeScene> {
  const scene = await openClusterScene();
  const { kube, clock } = scene;
  await kube.create(CUSTOM_RESOURCE_DEFINITIONS, CILIUM_NODE_DEFINITION);
  const object = (): KubeObject | undefined =>
    scene.api.objects('ciliumnodes', 'cilium.io')[0] as KubeObject | undefined;
  const ipamOf = (part: 'spec' | 'status'): Readonly<Record<string, unknown>> =>
    recordOf(recordOf(object()?.[part])['ipam']);
  const patchStatus = async (ipam: object): Promise<void> => {
    const body = { status: { ipam } };
    await clock.run(kube.patch(CILIUM_NODES, { name: 'n1' }, { kind: 'merge', body, subresource: 'status' }));
  };
  return {
    ...scene,
    startAgent: (flags = []) => scene.startAgent(['--supply-source=cilium-node', ...flags]),
    create: async (pool) => {
      await kube.create(CILIUM_NODES, {
        apiVersion: 'cilium.io/v2',
        kind: 'CiliumNode',
        metadata: { name: 'n1' },
        spec: { ipam: { pool } },
      } as KubeObject);
    },
    setPool: async (pool) => {
      const gone = Object.keys(recordOf(ipamOf('spec')['pool'])).filter((ip) => !(ip in pool));
      const entries = { ...pool, ...Object.fromEntries(gone.map((ip) => [ip, null])) };
      const body = { spec: { ipam: { pool: entries } } };
      await clock.run(kube.patch(CILIUM_NODES, { name: 'n1' }, { kind: 'merge', body }));
      await clock.advance(1_000);
    },
    patchStatus,
    mark: (...ips) => patchStatus({ 'release-ips': Object.fromEntries(ips.map((ip) => [ip, 'marked-for-release'])) }),
    status: () => ipamOf('status'),
    pool: () => recordOf(ipamOf('spec')['pool']) as PoolText,
    used: () => recordOf(ipamOf('status')['used']) as PoolText,
    releases: () => recordOf(ipamOf('status')['release-ips']) as Readonly<Record<string, string>>,
  };
}
