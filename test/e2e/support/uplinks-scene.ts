import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { AttachedEni } from '../../../sim/vpc/nic.ts';
import { createTestVpc, type TestVpc } from '../../../sim/vpc/vpc.ts';
import { buildExecutables } from '../../../tools/build.ts';
import { findViolations } from '../../support/invariants.ts';
import type { PodNetns } from '../../support/pod-netns.ts';
import { createTempDir, type TempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { prepareAsCilium, wireAsCilium } from '../../support/wire-as-cilium.ts';
import { SceneNode } from './scene-node.ts';

/** A Pod that was wired as cilium-cni does it, with an address of each family. */
type UplinksPod = {
  readonly name: string;
  readonly node: SceneNode;
  readonly eniId: string;
  readonly netns: PodNetns;
  /** Its link in the node. */
  readonly lxc: string;
  /** By family: `ips[4]`, `ips[6]`. */
  readonly ips: Readonly<Record<4 | 6, string>>;
};

/** Nodes with the role `uplinks` and Pods that are not the agent's. */
export type UplinksScene = {
  readonly vpc: TestVpc;
  readonly nodes: readonly SceneNode[];
  readonly pods: readonly UplinksPod[];
  pod(name: string): UplinksPod;
  node(name: string): SceneNode;
  /** Starts the agent of a node and waits until each address of the supply has its rules. */
  startAgent(node: SceneNode): Promise<void>;
  /** Gives a Pod of this name two addresses that the ENI has. */
  addPod(name: string, eniId: string, ips: Readonly<Record<4 | 6, string>>): Promise<UplinksPod>;
  /** The n-th address of each family that the VPC has assigned to an ENI; the first ones of a node are its router's. */
  pairOf(eniId: string, n: number): Readonly<Record<4 | 6, string>>;
  /** NICs by which packets of this source, for this destination, went through the VPC. */
  waysOf(src: string, dst?: string): Promise<readonly string[]>;
  /** Waits until kernel and journal of a node are as the role says; default 30 s. */
  settle(node: SceneNode, timeoutMs?: number): Promise<void>;
  close(): Promise<void>;
};

/** Flags of the role in all scenes. */
const UPLINKS_FLAGS = { role: 'uplinks', 'gc-interval': '1h', 'ip-cooldown': '0s' } as const;

const LAYOUT: Readonly<Record<string, readonly string[]>> = { n1: ['eni-1', 'eni-2'], n2: ['eni-3'] };
/** One for the router, two for Pods, one that nobody has. */
const PAIRS = 4;

/**
 * Opens a VPC with two nodes of the role `uplinks`, three ENIs, and one or two Pods on each ENI. `bare`: neither agents nor
 * Pods yet.
 */
export async function openUplinksScene(kind: 'bare' | 'wired' = 'wired'): Promise<UplinksScene> {
  await buildExecutables(['tke-route-eni', 'tke-eni-agent']);
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16', 'fd00:10::/32'],
    subnets: [1, 2].map((n) => ({ id: `subnet-${n}`, cidr: `10.0.${n}.0/24`, cidrV6: `fd00:10:0:${n}::/64` })),
    nodes: Object.keys(LAYOUT).map((name) => ({ name, primarySubnet: 'subnet-1' })),
  });
  const scene = new Scene(vpc, createTempDir('uplinks'));
  try {
    await scene.open();
    if (kind === 'wired') await scene.wire();
    return scene;
  } catch (error) {
    await scene.close();
    throw error;
  }
}

class Scene implements UplinksScene {
  readonly vpc: TestVpc;
  readonly nodes: SceneNode[] = [];
  readonly pods: UplinksPod[] = [];
  readonly #dir: TempDir;
  readonly #routers = new Map<string, readonly string[]>();

  constructor(vpc: TestVpc, dir: TempDir) {
    this.vpc = vpc;
    this.#dir = dir;
  }

  async open(): Promise<void> {
    for (const [name, eniIds] of Object.entries(LAYOUT)) await this.#openNode(name, eniIds);
  }

  async wire(): Promise<void> {
    await Promise.all(this.nodes.map((node) => this.startAgent(node)));
    for (const [name, eniId] of Object.entries({ a: 'eni-1', b: 'eni-2', b2: 'eni-2', c: 'eni-3' })) {
      const taken = this.pods.filter((pod) => pod.eniId === eniId).length + 1;
      await this.addPod(name, eniId, this.pairOf(eniId, taken));
    }
  }

  async #openNode(name: string, eniIds: readonly string[]): Promise<void> {
    const dir = join(this.#dir.path, name);
    mkdirSync(dir);
    const enis: AttachedEni[] = [];
    for (const eniId of eniIds) {
      enis.push(await this.vpc.attachEni(name, { eniId, subnetId: 'subnet-2' }));
      for (let count = 0; count < PAIRS; count++) await this.vpc.assignDual(eniId);
    }
    const node = new SceneNode({ vpc: this.vpc, name, dir, ruleMode: 'per-pod', enis, flags: UPLINKS_FLAGS });
    this.nodes.push(node);
    const router = Object.values(this.pairOf(eniIds[0] ?? '', 0));
    this.#routers.set(name, router);
    await prepareAsCilium(node.netns, router);
    node.writeSupply();
  }

  async startAgent(node: SceneNode): Promise<void> {
    await node.startAgent({ until: 'listening' });
    await this.settle(node);
  }

  async addPod(name: string, eniId: string, ips: Readonly<Record<4 | 6, string>>): Promise<UplinksPod> {
    const node = this.nodes.find(({ enis }) => enis.some((eni) => eni.eniId === eniId));
    if (node === undefined) throw new Error(`no node has ${eniId}`);
    const netns = await node.newNetns();
    const lxc = await wireAsCilium(node.netns, netns, Object.values(ips), this.#routers.get(node.name) ?? []);
    const pod = { name, node, eniId, netns, lxc, ips };
    this.pods.push(pod);
    return pod;
  }

  pod(name: string): UplinksPod {
    const pod = this.pods.find((candidate) => candidate.name === name);
    if (pod === undefined) throw new Error(`no Pod ${name}`);
    return pod;
  }

  node(name: string): SceneNode {
    const node = this.nodes.find((candidate) => candidate.name === name);
    if (node === undefined) throw new Error(`no node ${name}`);
    return node;
  }

  pairOf(eniId: string, n: number): Readonly<Record<4 | 6, string>> {
    const ips = this.vpc.assignedIps(eniId).map(({ ip }) => ip);
    const of = (isIpv6: boolean): string => ips.filter((ip) => ip.includes(':') === isIpv6)[n] ?? '';
    return { 4: of(false), 6: of(true) };
  }

  async waysOf(src: string, dst?: string): Promise<readonly string[]> {
    const log = await this.vpc.packetLog();
    const ways = log.filter((way) => way.src === src && (dst === undefined || way.dst === dst)).map((way) => way.via);
    return [...new Set(ways)].sort();
  }

  async settle(node: SceneNode, timeoutMs = 30_000): Promise<void> {
    const { netns, ruleMode, enis } = node;
    const attached = enis.filter(({ eniId }) => this.vpc.enisOf(node.name).includes(eniId));
    const uplinkIps = new Map(
      attached.map(({ eniId }) => [eniId, this.vpc.assignedIps(eniId).map(({ ip }) => ip)] as const),
    );
    let last: readonly string[] = [];
    await waitUntil(
      async () => {
        last = await findViolations({ netns, ruleMode, enis: attached, uplinkIps, stateDir: node.agent.stateDir });
        return last.length === 0;
      },
      {
        what: `uplinks of ${node.name}`,
        timeoutMs,
        everyMs: 20,
        explain: () => `${last.join('\n')}\n${node.agent.logs().slice(-3_000)}`,
      },
    );
  }

  async close(): Promise<void> {
    try {
      await Promise.all(this.nodes.map((node) => node.killAgent().catch(() => {})));
    } finally {
      await this.vpc.close();
      this.#dir.close();
    }
  }
}
