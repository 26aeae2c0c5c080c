/** Tag of what belongs to a cluster: the id of the cluster. TKE sets the same. */
export const CLUSTER_TAG = 'tke-clusterId';

/** Tags of ENIs that ipamd creates: cluster, `true`, the node and the uid of its NodeENIConfig. */
export const ENI_TAG = {
  cluster: CLUSTER_TAG,
  created: 'tke-created-eni',
  node: 'tke-node',
  uid: 'tke-nec-uid',
} as const;

/** Tag of exclusive ENIs: tells them from shared ENIs when only the cloud has a record of them. */
export const MODE_TAG = { name: 'tke-eni-mode', direct: 'direct-eni' } as const;

/** Tags of reserved addresses that ipamd makes. */
export const RESERVATION_TAG = { cluster: CLUSTER_TAG, created: 'tke-created-ip', claim: 'tke-ip-claim' } as const;

/** Tags of EIPs that ipamd allocates. */
export const EIP_TAG = { cluster: CLUSTER_TAG, created: 'tke-created-eip', claim: 'tke-eip-claim' } as const;

/** Tag of a load balancer of ours: whose it is. The API adds tags in the moment of creation. */
export const OWNER_TAG = 'tke-eni-owner';
