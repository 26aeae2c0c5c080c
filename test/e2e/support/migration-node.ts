import { mkdirSync } from 'node:fs';
import type { ExecutionContext } from 'ava';
import type { RuleMode } from '../../../dataplane/network.ts';
import { createTestVpc, type TestVpc } from '../../../sim/vpc/vpc.ts';
import { buildExecutables } from '../../../tools/build.ts';
import { type CriServer, startCriServer } from '../../support/cri-server.ts';
import { startTcpStream, type TcpStream } from '../../support/tcp-stream.ts';
import { createTempDir, type TempDir } from '../../support/temp-dir.ts';
import { describeLoss, startTraffic, type Traffic, type TrafficEnd } from '../../support/traffic.ts';
import { ProductBridge, type ProductPod } from './product-bridge.ts';
import { type AttachedPod, SceneNode } from './scene-node.ts';

/** The block of the node that is migrated: as in the product's own pages. */
const BLOCK = { cidr: '192.168.0.64/26', gateway: '192.168.0.65' } as const;
/** Flags of an agent that serves GlobalRoute Pods unless told otherwise. */
export const ON_BRIDGE = { 'default-network': 'tke-bridge' } as const;
const RATE = 1_000;

/** A node whose GlobalRoute Pods are the product's, with a runtime, in a VPC that leads its block to it. */
export class MigrationNode {
  readonly vpc: TestVpc;
  readonly dir: TempDir;
  readonly node: SceneNode;
  readonly product: ProductBridge;
  readonly runtime: CriServer;
  /** The primary interface of another node. */
  readonly other: TrafficEnd;
  readonly #traffic: { readonly what: string; readonly stream: Traffic }[] = [];
  readonly #connections: { readonly what: string; readonly stream: TcpStream }[] = [];
  #port = 7_100;

  constructor(vpc: TestVpc, dir: TempDir, runtime: CriServer, ruleMode: RuleMode) {
    this.vpc = vpc;
    this.dir = dir;
    this.runtime = runtime;
    const folder = dir.join('n1');
    mkdirSync(folder);
    this.product = new ProductBridge(vpc.node('n1').netns, BLOCK, dir.join('networks'));
    this.node = new SceneNode({
      ...{ vpc, name: 'n1', dir: folder, ruleMode, enis: [], criSocket: runtime.socketPath },
      flags: {
        ...{ 'rule-mode': ruleMode, 'pod-cidr': BLOCK.cidr, 'gr-host-local-dir': this.product.dir },
        ...{ 'ip-cooldown': '0s', 'gc-interval': '1h', 'add-wait': '5s' },
      },
    });
    const { netns, primary } = vpc.node('n2');
    this.other = { netns, ip: primary.primaryIp };
  }

  /** A Pod of the product, which the runtime lists. */
  async addOld(name: string): Promise<ProductPod> {
    const pod = await this.product.add(await this.node.newNetns());
    this.list(pod, name);
    return pod;
  }

  /** A Pod of ours, which the runtime lists. */
  async addYoung(name: string): Promise<AttachedPod> {
    const pod = await this.node.addPod({ name });
    this.list(pod, name);
    return pod;
  }

  /** The runtime lists a sandbox from now on. */
  list({ containerId: id, ip, netns }: Pick<ProductPod, 'containerId' | 'ip' | 'netns'>, podName: string): void {
    this.runtime.addSandbox({ id, podName, podNamespace: 'default', ips: [ip], netns: netns.path });
  }

  /** Starts numbered packets and one connection between two ends, both ways. */
  async stream(what: string, a: TrafficEnd, b: TrafficEnd): Promise<void> {
    const port = this.#port++;
    const starting = [
      startTraffic(a, b, { rate: RATE, port }).then((stream) => this.#traffic.push({ what, stream })),
      startTcpStream(a, b, port).then((stream) => this.#connections.push({ what, stream })),
    ];
    await Promise.all(starting);
  }

  /** Ends what `stream` started, and says what was lost. */
  async losses(): Promise<readonly string[]> {
    const lines = await Promise.all([
      ...this.#traffic
        .splice(0)
        .map(async ({ what, stream }) => describeLoss(await stream.finish()).map((line) => `${what}, UDP: ${line}`)),
      ...this.#connections
        .splice(0)
        .map(async ({ what, stream }) => (await stream.finish()).map((line) => `${what}, TCP: ${line}`)),
    ]);
    return lines.flat();
  }

  /** Ends everything. Idempotent. */
  async close(): Promise<void> {
    await Promise.all([...this.#traffic, ...this.#connections].map(({ stream }) => stream.close()));
    try {
      await this.node.killAgent();
    } catch {
      // No agent was started.
    }
    await this.runtime.close();
    await this.vpc.close();
    this.dir.close();
  }
}

/** Opens the node for one test; it is closed with the test. */
export async function openMigrationNode(t: ExecutionContext, ruleMode: RuleMode): Promise<MigrationNode> {
  await buildExecutables(['tke-route-eni', 'tke-eni-agent']);
  const dir = createTempDir('migration');
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16'],
    subnets: [{ id: 's0', cidr: '10.0.0.0/24' }],
    nodes: ['n1', 'n2'].map((name) => ({ name, primarySubnet: 's0' })),
  });
  const scene = new MigrationNode(vpc, dir, await startCriServer(dir.join('cri.sock')), ruleMode);
  t.teardown(() => scene.close());
  await vpc.addGlobalRoute({ cidr: BLOCK.cidr, nodeIp: vpc.node('n1').primary.primaryIp });
  // As tke-bridge-agent writes it: the protocol is not ours.
  await scene.node.netns.ip('rule', 'add', 'to', BLOCK.cidr, 'priority', '1024', 'lookup', 'main');
  scene.node.writeSupply();
  return scene;
}
