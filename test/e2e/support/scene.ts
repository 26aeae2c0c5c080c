import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext, TestFn } from 'ava';
import type { RuleMode } from '../../../dataplane/network.ts';
import type { AttachedEni } from '../../../sim/vpc/nic.ts';
import { createTestVpc, type TestVpc } from '../../../sim/vpc/vpc.ts';
import { buildExecutables } from '../../../tools/build.ts';
import { createTempDir, type TempDir } from '../../support/temp-dir.ts';
import { type NodeSpec, SceneNode } from './scene-node.ts';

export type { ScenePod } from './scene-node.ts';

/** The two layouts of rules; what is about packets is tried in both. */
export const RULE_MODES = ['compact', 'per-pod'] as const satisfies readonly RuleMode[];

/** What one scene consists of: a VPC, nodes, an agent on each. */
type SceneSpec = {
  readonly ruleMode: RuleMode;
  /** By what tests ask for it; default the rule mode. */
  readonly key?: string;
  /** Default: node n1 with ENI eni-1 and eight addresses. */
  readonly nodes?: readonly NodeSpec[];
  /** Gives each Pod an address of both families. Default false: IPv4 alone, and subnets without IPv6. */
  readonly isDual?: boolean;
  /** Flags for every agent of the scene. */
  readonly agentFlags?: Readonly<Record<string, string | boolean | readonly string[]>>;
};

/** A VPC with running agents. */
export type Scene = {
  readonly vpc: TestVpc;
  /** The first node. */
  readonly node: SceneNode;
  readonly nodes: readonly SceneNode[];
};

/** Scenes of one test file, up before its first test and gone after its last, come what may. */
type Scenes = {
  /** @throws Error when there is none of that key */
  get(key: string): Scene;
  /** Asserts that journal, kernel and runtime of every node of a scene agree. */
  verify(t: ExecutionContext, key: string): Promise<void>;
};

const DEFAULT_NODES: readonly NodeSpec[] = [{ name: 'n1', enis: [{ eniId: 'eni-1', ips: 8 }] }];
/** Tests that need an address at rest see to it by themselves; the others must not run out of addresses. */
const DEFAULT_FLAGS = { 'ip-cooldown': '0s', 'gc-interval': '1h', 'add-wait': '5s', 'force-reuse-after': '100ms' };

/** Registers the hooks that open and close the scenes of a file. */
export function openScenes(test: TestFn, specs: readonly SceneSpec[]): Scenes {
  const scenes = new Map<string, Scene & { readonly dir: TempDir }>();
  const get = (key: string): Scene => {
    const scene = scenes.get(key);
    if (scene === undefined) throw new Error(`${key}: no such scene in this file`);
    return scene;
  };
  test.before(async () => {
    await buildExecutables(['tke-route-eni', 'tke-eni-agent']);
    await Promise.all(specs.map(async (spec) => scenes.set(spec.key ?? spec.ruleMode, await openScene(spec))));
  });
  // A test that failed half-way must not make those after it fail.
  test.afterEach.always(async () => {
    for (const { nodes } of scenes.values()) for (const node of nodes) await node.deleteAll();
  });
  test.after.always(async () => {
    await Promise.all([...scenes.values()].map(closeScene));
  });
  return {
    get,
    verify: async (t, key) => {
      const { nodes } = get(key);
      const found = await Promise.all(nodes.map((node) => node.violations()));
      t.deepEqual(found.flat(), [], 'the invariants of the node');
    },
  };
}

/** Opens one scene; `openScenes` does for test files. The caller closes it. */
export async function openScene(spec: SceneSpec): Promise<Scene & { readonly dir: TempDir }> {
  const nodeSpecs = spec.nodes ?? DEFAULT_NODES;
  const vpc = await createTestVpc({
    vpcCidrs: spec.isDual === true ? ['10.0.0.0/16', 'fd00:10::/32'] : ['10.0.0.0/16'],
    subnets: [
      { id: 'subnet-a', cidr: '10.0.1.0/24', ...(spec.isDual === true ? { cidrV6: 'fd00:10:0:1::/64' } : {}) },
      { id: 'subnet-b', cidr: '10.0.2.0/24', ...(spec.isDual === true ? { cidrV6: 'fd00:10:0:2::/64' } : {}) },
    ],
    nodes: nodeSpecs.map(({ name }) => ({ name, primarySubnet: 'subnet-a' })),
  });
  const dir = createTempDir('e2e');
  const nodes: SceneNode[] = [];
  try {
    for (const nodeSpec of nodeSpecs) {
      const nodeDir = join(dir.path, nodeSpec.name);
      mkdirSync(nodeDir);
      const enis = await attachEnis(vpc, nodeSpec, spec.isDual === true);
      const directEnis = await attachDirect(vpc, nodeSpec);
      const flags = { 'rule-mode': spec.ruleMode, ...DEFAULT_FLAGS, ...spec.agentFlags, ...nodeSpec.agentFlags };
      const wrap = nodeSpec.wrapAgent?.(nodeDir) ?? [];
      const node = new SceneNode({
        vpc,
        name: nodeSpec.name,
        dir: nodeDir,
        ruleMode: spec.ruleMode,
        enis,
        directEnis,
        flags,
        wrap,
      });
      nodes.push(node);
      node.writeSupply();
    }
    await Promise.all(nodes.map((node) => node.startAgent()));
    const [node] = nodes;
    if (node === undefined) throw new Error('a scene has at least one node');
    return { vpc, node, nodes, dir };
  } catch (error) {
    await closeScene({ vpc, nodes, dir });
    throw error;
  }
}

async function attachEnis(vpc: TestVpc, { name, enis }: NodeSpec, isDual: boolean): Promise<readonly AttachedEni[]> {
  const attached: AttachedEni[] = [];
  for (const { eniId, subnetId = 'subnet-b', ips } of enis) {
    attached.push(await vpc.attachEni(name, { eniId, subnetId }));
    if (!isDual) await vpc.assignIps(eniId, ips);
    else for (let count = 0; count < ips; count++) await vpc.assignDual(eniId);
  }
  return attached;
}

async function attachDirect(vpc: TestVpc, { name, directEnis = [] }: NodeSpec): Promise<readonly AttachedEni[]> {
  const attached: AttachedEni[] = [];
  for (const { eniId, subnetId = 'subnet-b' } of directEnis) {
    attached.push(await vpc.attachEni(name, { eniId, subnetId, isDirect: true }));
  }
  return attached;
}

/** Ends the agents of a scene and removes it. */
export async function closeScene({ vpc, nodes, dir }: Pick<Scene, 'vpc' | 'nodes'> & { readonly dir: TempDir }) {
  try {
    await Promise.all(nodes.map((node) => node.killAgent()));
  } finally {
    await vpc.close();
    dir.close();
  }
}
