/** A static exclusive ENI: it outlives its Pods. Fields as its VpcENI contains them. */
export type StaticEni = {
  readonly eniId: string;
  /** Its name in the cloud; '' when unknown. */
  readonly name: string;
  readonly mac: string;
  readonly primaryIp: string;
  readonly subnetId: string;
  /** Gateway and network of its subnet. */
  readonly gateway: string;
  readonly subnetCidr: string;
  /** `namespace/name` of its VpcIPClaim. */
  readonly claim: string;
  /** The zone of its subnet; absent when unknown: the cloud checks it at the attachment. */
  readonly zone?: string;
  /** On no instance: only its VpcENI has it, and a node that had it removes its entry. */
  readonly isDetached: boolean;
  /** Detached, complete and not being deleted: the next node may attach it. */
  readonly isAttachable: boolean;
  /** The node whose NodeENIConfig has it; absent while it is detached. */
  readonly nodeName?: string;
};

/**
 * Reports whether a static ENI is a node's: the one on whose instance the cloud shows it, whatever its tags. Where it is on none,
 * its VpcENI decides, and where the instance has two objects, as while a node is renamed.
 * @param instanceOf returns the instance of a node by its object
 */
export function isStaticEniOf(
  { nodeName }: Pick<StaticEni, 'nodeName'>,
  node: { readonly name: string; readonly instanceId: string | undefined },
  attachedTo: string | undefined,
  instanceOf: (nodeName: string) => string | undefined,
): boolean {
  const isNamed = nodeName === node.name;
  if (attachedTo === undefined || node.instanceId === undefined) return isNamed;
  if (nodeName !== undefined && instanceOf(nodeName) === attachedTo) return isNamed;
  return attachedTo === node.instanceId;
}
