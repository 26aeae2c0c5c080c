import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { NODES } from '../../../kube/resource-types.ts';
import type { Child } from '../../../sim/support/child.ts';
import { isObject } from '../../../sim/support/netns.ts';
import { type ContainerdNode, type RunningPod, startContainerdNode } from '../../support/containerd-node.ts';
import { DIST_BIN_DIR } from '../../support/executables.ts';
import { findViolations } from '../../support/invariants.ts';
import { waitUntil } from '../../support/wait-until.ts';
import type { SystemMember, SystemMemberParts } from '../../system/system-member.ts';
import type { VpcCloud } from '../../system/vpc-cloud.ts';
import { Kubelet } from './kubelet.ts';
import { IMAGE } from './pods.ts';

/** Where Debian's containernetworking-plugins puts the reference plugins. */
const REFERENCE_DIR = '/usr/lib/cni';
const REFERENCE_PLUGINS = ['loopback', 'portmap', 'bandwidth'] as const;

/** A running Pod and where it is. */
export type DemoPod = RunningPod & { readonly name: string; readonly node: DemoNode };

/** Starts a node: containerd, with the image, in the node's namespaces; the agent comes when the node joins. */
export async function startDemoNode(parts: SystemMemberParts, image: string): Promise<DemoNode> {
  const { name, dir, cloud } = parts;
  const containerd = await startContainerdNode({
    name,
    netns: cloud.vpc.node(name).netns,
    dir,
    sandboxImage: IMAGE,
    images: [image],
    referencePluginDir: REFERENCE_DIR,
    referencePlugins: REFERENCE_PLUGINS,
  });
  return new DemoNode(parts, containerd);
}

/** A node with containerd, the packaged agent on its default paths, and a stand-in for the kubelet. */
export class DemoNode implements SystemMember {
  readonly name: string;
  readonly cores: number;
  readonly containerd: ContainerdNode;
  #parts: SystemMemberParts;
  #cloud: VpcCloud;
  #kubelet: Kubelet;
  #agent: Child | undefined;
  /** A Pod was on the bridge: it stays, and is compared from then on. */
  hasBridge = false;

  constructor(parts: SystemMemberParts, containerd: ContainerdNode) {
    this.name = parts.name;
    this.cores = parts.cores;
    this.containerd = containerd;
    this.#parts = parts;
    this.#cloud = parts.cloud;
    this.#kubelet = new Kubelet(containerd, parts.cluster);
  }

  /** Starts the agent and the kubelet's stand-in. Called once, when the node joins. */
  async startAgent(): Promise<void> {
    const flags = { ...this.#parts.flags, kubeconfig: this.#parts.kubeconfig, 'node-name': this.name };
    this.#agent = this.containerd.exec([
      join(DIST_BIN_DIR, 'tke-eni-agent'),
      '--supply-source=cluster',
      // The node has a mount namespace of its own, and process 1 is not in it.
      '--host-root=/',
      `--plugin-dir=${DIST_BIN_DIR}`,
      '--port-mapping=true',
      '--bandwidth=true',
      // The machine's folder, which is not the node's own.
      '--gr-host-local-dir=',
      ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
    ]);
    this.#kubelet.start();
  }

  /** Waits until the agent has addresses, its conflist is there, and containerd has read it. */
  async awaitReady(): Promise<void> {
    const conflist = this.containerd.hostPath('/etc/cni/net.d/10-tke-eni.conflist');
    await waitUntil(
      () => {
        if (this.#agent?.isRunning !== true) throw new Error(`${this.name}: the agent ended:\n${this.logs()}`);
        return existsSync(conflist);
      },
      { what: `${this.name}: the agent's conflist`, timeoutMs: 60_000 },
    );
    await this.containerd.awaitNetworkReady();
  }

  /** Process id of the agent. */
  get agentPid(): number {
    return this.#agent?.isRunning === true ? this.#agent.pid : 0;
  }

  /** The Pods that run here. */
  get pods(): readonly DemoPod[] {
    return this.#kubelet.pods.map((pod) => ({ ...pod, name: pod.spec.name, node: this }));
  }

  /** Compares kernel, journal, runtime and the ENIs that the VPC has attached. */
  async violations(): Promise<readonly string[]> {
    const { vpc } = this.#cloud;
    const node = await this.#parts.cluster.admin.get(NODES, { name: this.name });
    const { podCIDR } = isObject(node?.['spec']) ? node['spec'] : {};
    const found = await findViolations({
      netns: this.containerd.netns,
      stateDir: this.containerd.hostPath('/run/tke-eni'),
      ruleMode: 'compact',
      podCidrs: typeof podCIDR === 'string' ? [podCIDR] : [],
      ...(this.hasBridge ? { grWiring: 'bridge' } : {}),
      enis: await Promise.all(vpc.enisOf(this.name).map((eniId) => vpc.eni(eniId))),
      sandboxes: this.pods.map((pod) => ({ id: pod.sandboxId, ips: [pod.ip] })),
      resolveNetns: (path) => this.containerd.insidePath(path),
    });
    return found.map((violation) => `${this.name}: ${violation}`);
  }

  /** The agent's log. */
  logs(): string {
    return `${this.#agent?.stdout ?? ''}${this.#agent?.stderr ?? ''}`;
  }

  /** Ends the agent, the Pods and containerd. Idempotent. */
  async close(): Promise<void> {
    await this.#kubelet.close();
    await this.#agent?.stop();
    await this.containerd.close();
  }
}
