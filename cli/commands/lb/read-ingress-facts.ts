import type { BackendPort } from '../../../cloud-controller-manager/backends/backend-port.ts';
import { unitKeysOf } from '../../../cloud-controller-manager/ingresses/decide-membership.ts';
import { readIngressHead } from '../../../cloud-controller-manager/ingresses/read-ingress.ts';
import { readBackendPorts } from '../../../cloud-controller-manager/services/read-ports.ts';
import { ifKnown, known } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { INGRESS_CLASSES, INGRESSES } from '../../../kube/resource-types.ts';
import { recordOf, textOf } from '../../../runtime/json.ts';
import { type ClusterReader, readList } from '../cluster/read-cluster.ts';
import type { IngressFacts } from './lb-facts.ts';

/** Reads Ingresses and their classes. Secrets are not asked for. @throws UserError NO_CLUSTER */
export async function readIngressFacts(
  reader: Omit<ClusterReader, 'clock'>,
  servesWithoutClass: boolean,
): Promise<Known<Omit<IngressFacts, 'ports'>>> {
  const [ingresses, classes] = await Promise.all([
    readList(reader, INGRESSES, (object) => object),
    readList(reader, INGRESS_CLASSES, (object) => [object.metadata.name, controllerOf(object)] as const),
  ]);
  if (ingresses.kind === 'unknown') return ingresses;
  if (classes.kind === 'unknown') return classes;
  return known({ ingresses: ingresses.value, controllers: new Map(classes.value), servesWithoutClass });
}

/** Returns the facts with the ports of Services, and of the named Ingress and those that share its load balancer alone. */
export function selectIngresses(
  read: Known<Omit<IngressFacts, 'ports'>>,
  ports: ReadonlyMap<string, readonly BackendPort[] | 'external'>,
  key: string | undefined,
): Known<IngressFacts> {
  const facts = ifKnown(read);
  if (facts === undefined || read.kind === 'unknown') return read as Known<never>;
  const { ingresses } = facts;
  if (key === undefined) return known({ ...facts, ports });
  const units = new Set(ingresses.filter((one) => keyOf(one) === key).flatMap(unitsOf));
  return known({ ...facts, ports, ingresses: ingresses.filter((one) => unitsOf(one).some((unit) => units.has(unit))) });
}

/** Reads the ports of Services, by `namespace/name`. */
export function portsOf(services: readonly KubeObject[]): ReadonlyMap<string, readonly BackendPort[] | 'external'> {
  return new Map(services.map((object) => [keyOf(object), readBackendPorts(object)]));
}

function controllerOf(object: KubeObject): string {
  return textOf(recordOf(object['spec'])['controller']);
}

function unitsOf(object: KubeObject): readonly string[] {
  return unitKeysOf(readIngressHead(object));
}

function keyOf({ metadata: { namespace = '', name } }: KubeObject): string {
  return `${namespace}/${name}`;
}
