import type { InstancePort } from '../../cloud/cloud.ts';
import type { Logger } from '../../runtime/log.ts';
import type { NodeEntry } from '../cache/node-entry.ts';

type Found = { readonly uid: string; readonly ip: string; readonly instanceId: string };

/**
 * Instances of Nodes that nothing names: without providerID, label and Machine, as kubeadm makes them where no cloud
 * provider runs. Each is found by its InternalIP within the VPC.
 */
export class AddressLookup {
  readonly #instances: Pick<InstancePort, 'findByPrivateIps'>;
  readonly #log: Logger;
  /** By name of the Node; another Node of the name, or another address, is looked up again. */
  readonly #found = new Map<string, Found>();

  constructor(instances: Pick<InstancePort, 'findByPrivateIps'>, log: Logger) {
    this.#instances = instances;
    this.#log = log;
  }

  /** Returns the instance that was found for a Node; undefined: none, or not looked for. */
  find({ name, uid, internalIp }: Pick<NodeEntry, 'name' | 'uid' | 'internalIp'>): string | undefined {
    const found = this.#found.get(name);
    return found?.uid === uid && found.ip === internalIp ? found.instanceId : undefined;
  }

  /** Returns the names of the Nodes for which an instance was found. */
  namesOf(instanceId: string): readonly string[] {
    return [...this.#found].flatMap(([name, found]) => (found.instanceId === instanceId ? [name] : []));
  }

  /** Forgets a Node that does not exist any more. */
  forget(name: string): void {
    this.#found.delete(name);
  }

  /**
   * Looks in the VPC of the cluster for the instance of a Node that names none. Returns why there is none, for people;
   * undefined when it is found, or when another provider's id or no address is there to look for. @throws CloudError
   */
  async lookUp(node: NodeEntry, vpcId: string | undefined, signal: AbortSignal): Promise<string | undefined> {
    const { name, uid, internalIp: ip, foreignProviderId, isInstance } = node;
    if (!isInstance || foreignProviderId !== undefined || ip === undefined || this.find(node) !== undefined)
      return undefined;
    if (vpcId === undefined) return `the VPC in which to look for ${ip} is not known; name it in the ConfigMap`;
    const all = await this.#instances.findByPrivateIps(vpcId, [ip], { priority: 'pod', owner: name, signal });
    const ids = [...new Set(all.map(({ instanceId }) => instanceId))];
    const [instanceId] = ids;
    if (instanceId === undefined) return `no instance of ${vpcId} has the address ${ip}`;
    if (ids.length > 1) return `${ip} is the address of several instances of ${vpcId}: ${ids.join(', ')}`;
    this.#found.set(name, { uid, ip, instanceId });
    this.#log.info('the instance of a Node was found by its address', { node: name, instanceId, ip, vpcId });
    return undefined;
  }
}
