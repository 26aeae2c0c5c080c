import { API_VERSION, NODE_NAME_LABEL, RECORD_LABEL } from '../../../crd/names.ts';
import { VPC_IP_KIND, vpcIpName } from '../../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../../crd/vpc-ip-claim.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import type { PodRecord, RecordedIp } from './decide-records.ts';

/** Renders the record of a Pod's claim, whole: nothing is added to it later. It is deleted with its Pod. */
export function renderClaim({ pod, mode, ips }: PodRecord): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: VPC_IP_CLAIM_KIND.kind,
    metadata: {
      name: pod.name,
      namespace: pod.namespace,
      labels: labelsOf(pod.nodeName),
      // Without blockOwnerDeletion: the deletion of a Pod does not wait for ipamd's objects.
      ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid }],
    },
    spec: { podUID: pod.uid, mode },
    status: {
      phase: 'Bound',
      vpcIPs: ips.map(({ ip }) => vpcIpName(ip)),
      ips: ips.map(({ ip }) => ip),
      ...(ips[0] === undefined ? {} : { eniID: ips[0].eniId }),
      nodeName: pod.nodeName,
    },
  };
}

/** Renders the record of a Pod's address. It has no owner: a cluster-scoped object cannot have a namespaced owner. */
export function renderVip({ pod }: PodRecord, { ip, eniId, subnetId, assignmentId }: RecordedIp): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: VPC_IP_KIND.kind,
    metadata: { name: vpcIpName(ip), labels: labelsOf(pod.nodeName) },
    spec: {
      type: 'Pod',
      ip,
      claimRef: { namespace: pod.namespace, name: pod.name, uid: pod.uid },
      ...(subnetId === undefined ? {} : { subnetID: subnetId }),
      nodeName: pod.nodeName,
    },
    status: { phase: 'Assigned', eniID: eniId, ...(assignmentId === undefined ? {} : { assignmentID: assignmentId }) },
  };
}

/**
 * Builds the merge patch that turns an object into `required`, guarded by the version that was read. Fields that `required`
 * does not have stay unchanged.
 */
export function renderPatch(required: KubeObject, resourceVersion: string): object {
  const { labels, ownerReferences } = required.metadata;
  const metadata = { resourceVersion, labels, ...(ownerReferences === undefined ? {} : { ownerReferences }) };
  return { metadata, spec: required['spec'], status: required['status'] };
}

function labelsOf(nodeName: string): Readonly<Record<string, string>> {
  return { [NODE_NAME_LABEL]: nodeName, [RECORD_LABEL.key]: RECORD_LABEL.value };
}
