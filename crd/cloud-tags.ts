/** Tag of what belongs to a cluster: the id of the cluster. TKE sets the same, so it proves nothing alone. */
export const CLUSTER_TAG = 'tke-clusterId';

/** Tags of ENIs that ipamd creates: cluster, `true`, the node and the uid of its NodeENIConfig. Only ipamd sets the last one. */
export const ENI_TAG = {
  cluster: CLUSTER_TAG,
  created: 'tke-created-eni',
  node: 'tke-node',
  uid: 'tke-nec-uid',
} as const;

/** Tag of exclusive ENIs: tells them from shared ENIs when only the cloud has a record of them. */
export const MODE_TAG = { name: 'tke-eni-mode', direct: 'direct-eni' } as const;

/** Tags of reserved addresses that ipamd makes. Only ipamd sets that of the claim. */
export const RESERVATION_TAG = { cluster: CLUSTER_TAG, created: 'tke-created-ip', claim: 'tke-ip-claim' } as const;

/** Tags of EIPs that ipamd allocates. TKE sets the same but for that of the claim. */
export const EIP_TAG = { cluster: CLUSTER_TAG, created: 'tke-created-eip', claim: 'tke-eip-claim' } as const;

/**
 * Reports whether ipamd of this cluster created an ENI, for whichever NodeENIConfig: it may have been deleted and made again.
 * Nothing else is deleted as an orphan or taken into an object.
 */
export function isOwnEni(tags: Readonly<Record<string, string>>, clusterId: string): boolean {
  return tags[ENI_TAG.cluster] === clusterId && (tags[ENI_TAG.uid] ?? '') !== '';
}

/**
 * Tag of a load balancer, security group or certificate of ours: whose it is. Nobody else sets it. The API adds tags in the
 * moment of creation.
 */
export const OWNER_TAG = 'tke-eni-owner';

/**
 * Tag of a load balancer or certificate of ours: the namespace of the object that it was made for. A load balancer with it, also
 * one where a person put it, is used for objects of that namespace alone.
 */
export const NAMESPACE_TAG = 'tke-eni-namespace';
