import type { ControllerDeps } from '../controller/controller-deps.ts';
import { readCloudNode } from '../nodes/cloud-node.ts';
import { findVpc, readSeen } from '../nodes/seen-instance.ts';
import { type BackendNode, decideBackendNode } from './decide-backend-node.ts';
import { type PodNode, readPodNode } from './pod-node.ts';

/** The Nodes as load balancers depend on them; computed once after each change. */
export class BackendNodes {
  readonly #deps: Pick<ControllerDeps, 'config' | 'nodes'>;
  readonly #podNodes = new Map<string, PodNode>();
  #backends: { readonly vpcId: string | undefined; readonly nodes: readonly BackendNode[] } | undefined;
  #vpc: { readonly id: string | undefined } | undefined;

  constructor(deps: Pick<ControllerDeps, 'config' | 'nodes'>) {
    this.#deps = deps;
  }

  /** Notes that Nodes have changed what load balancers depend on. */
  changed(): void {
    this.#backends = undefined;
    this.#vpc = undefined;
    this.#podNodes.clear();
  }

  /** The VPC of the cluster; undefined while it is not known. */
  get vpcId(): string | undefined {
    const { config, nodes } = this.#deps;
    this.#vpc ??= { id: findVpc(config.vpcId, this.#seen(nodes.values())) };
    return this.#vpc.id;
  }

  /** Every Node that may be a backend. */
  backendsIn(vpcId: string): readonly BackendNode[] {
    if (this.#backends?.vpcId === vpcId) return this.#backends.nodes;
    const roles = [...this.#deps.nodes.values()].map((node) => decideBackendNode(readCloudNode(node), vpcId));
    const nodes = roles.flatMap((role) => (role.kind === 'backend' ? [role.backend] : []));
    this.#backends = { vpcId, nodes };
    return nodes;
  }

  /** The addresses of backends that are bound by them, as they have no instance. */
  get boundIps(): ReadonlySet<string> {
    const backends = this.vpcId === undefined ? [] : this.backendsIn(this.vpcId);
    return new Set(backends.flatMap(({ ip, instanceId }) => (instanceId === undefined ? [ip] : [])));
  }

  /** The Node of a Pod; undefined when it is not in the cache. */
  nodeOf(name: string): PodNode | undefined {
    const known = this.#podNodes.get(name);
    if (known !== undefined) return known;
    const node = this.#deps.nodes.get(name);
    if (node === undefined) return undefined;
    const read = readPodNode(node);
    this.#podNodes.set(name, read);
    return read;
  }

  *#seen(nodes: ReturnType<ControllerDeps['nodes']['values']>): Iterable<string> {
    for (const node of nodes) {
      const seen = readSeen(readCloudNode(node));
      if (seen !== undefined) yield seen.vpcId;
    }
  }
}
