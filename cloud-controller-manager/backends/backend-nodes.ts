import type { ControllerDeps } from '../controller/controller-deps.ts';
import { readCloudNode } from '../nodes/cloud-node.ts';
import { chooseBackends, nodesThatCount } from './choose-backends.ts';
import type { BackendNode } from './decide-backend-node.ts';
import { type PodNode, readPodNode } from './pod-node.ts';

type NodesDeps = Pick<ControllerDeps, 'instances' | 'nodes'>;

/** The Nodes as load balancers depend on them; computed once after each change. */
export class BackendNodes {
  readonly #deps: NodesDeps;
  readonly #podNodes = new Map<string, PodNode>();
  #backends: { readonly vpcId: string | undefined; readonly nodes: readonly BackendNode[] } | undefined;
  #counting: ReadonlySet<string> | undefined;
  #vpc: { readonly id: string | undefined } | undefined;

  constructor(deps: NodesDeps) {
    this.#deps = deps;
  }

  /** Notes that Nodes or their instances have changed what load balancers depend on. */
  changed(): void {
    this.#backends = undefined;
    this.#counting = undefined;
    this.#vpc = undefined;
    this.#podNodes.clear();
  }

  /** The VPC of the cluster; undefined while it is not known. */
  get vpcId(): string | undefined {
    this.#vpc ??= { id: this.#deps.instances.vpcId };
    return this.#vpc.id;
  }

  /** Every Node that may be a backend. */
  backendsIn(vpcId: string): readonly BackendNode[] {
    if (this.#backends?.vpcId === vpcId) return this.#backends.nodes;
    const { nodes, instances } = this.#deps;
    const all = [...nodes.values()].map(readCloudNode);
    // While no instance is in the VPC, none would be left.
    const only = instances.vpcFault === undefined ? vpcId : undefined;
    this.#backends = { vpcId, nodes: chooseBackends(all, (node) => instances.of(node), only) };
    return this.#backends.nodes;
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
    const read = readPodNode(node, this.#deps.instances.of(readCloudNode(node)), this.#countingNames().has(name));
    this.#podNodes.set(name, read);
    return read;
  }

  /** The names of the Nodes that count, where several name one instance. */
  #countingNames(): ReadonlySet<string> {
    const { nodes, instances } = this.#deps;
    const count = () => nodesThatCount([...nodes.values()].map(readCloudNode), (node) => instances.of(node));
    this.#counting ??= new Set(count().map(({ name }) => name));
    return this.#counting;
  }
}
