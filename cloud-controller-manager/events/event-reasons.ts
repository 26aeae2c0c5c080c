import type { EventSink } from '../../kube/events/event-object.ts';
import type { EventReason } from '../../kube/events/event-reason.ts';
import { BALANCER_EVENTS } from './balancer-event-reasons.ts';

const LOCK = ['Endpoints', 'ConfigMap', 'Lease'];
const NODE = ['Node'];

/**
 * All events of the cloud controller manager. An event with another reason does not compile;
 * `docs/reference/events.md` is generated from this. Reasons are upstream's where the meaning is equal.
 */
export const CCM_EVENTS = {
  LeaderElection: {
    type: 'Normal',
    objects: LOCK,
    cause: 'a replica began or ended to lead; the message names it',
    cure: '',
  },
  Forbidden: {
    type: 'Warning',
    objects: LOCK,
    cause:
      'a right is missing, in Kubernetes or in the cloud; the controller that needs it does not run, or its calls fail',
    cure: 'grant what the message names; the controller begins within a minute',
  },
  Unauthorized: {
    type: 'Warning',
    objects: LOCK,
    cause: 'the API server does not accept the token',
    cure: 'look at the ServiceAccount or the kubeconfig',
  },
  CredentialsMissing: {
    type: 'Warning',
    objects: LOCK,
    cause: 'there is no key to the cloud: the message names the sources that were asked',
    cure: 'do what the message says: mostly the Secret `tke-eni-ipamd-credentials` with the entries `secretId` and `secretKey`, and a restart',
  },
  CredentialsRefused: {
    type: 'Warning',
    objects: LOCK,
    cause: 'the cloud does not accept the key, or does not let it assume the role',
    cure: 'look at `--credentials`, the Secret, and the clock of the machine; grant `sts:AssumeRole` where the message says so',
  },
  ConfigInvalid: {
    type: 'Warning',
    objects: LOCK,
    cause:
      'the cloud has no such region, or no instance of a Node is in the VPC of `--vpc-id`; then no target and no route is removed for that',
    cure: 'set `--region` to the region of the VPC, such as ap-guangzhou; correct `--vpc-id`, or leave it out',
  },
  Synced: {
    type: 'Normal',
    objects: NODE,
    cause: 'the Node has its providerID, addresses and labels, and waits for its cloud provider no more',
    cure: '',
  },
  InstanceUnknown: {
    type: 'Warning',
    objects: NODE,
    cause:
      '`spec.providerID` is in no known form, the cloud has no such instance, or not exactly one instance has the address of a Node without providerID',
    cure: 'do what the message says; look at `--region` and the account of the key',
  },
  InstanceTaken: {
    type: 'Warning',
    objects: NODE,
    cause:
      'two Nodes name one instance, and the other one counts: its address is that of the instance, its kubelet is heard, or it is older. This one is not changed, and serves nothing; neither is deleted',
    cure: 'delete the Node that does not exist any more',
  },
  AddressInvalid: {
    type: 'Warning',
    objects: NODE,
    cause: 'the address of `--node-ip` of the kubelet is none of its instance, or the cloud reports no address',
    cure: 'start the kubelet with an address of its instance',
  },
  CloudRefused: {
    type: 'Warning',
    objects: NODE,
    cause: 'the cloud refuses to describe the instance, whatever is tried',
    cure: 'grant what the message names to the role or user of the key',
  },
  FailedToCreateRoute: {
    type: 'Warning',
    objects: NODE,
    cause:
      'there is no route to the podCIDR of the Node, with `--routes`; the message has the reason. Its Pods are not reached from other nodes',
    cure: 'do what the message says: raise the quota of routes, correct `--cluster-cidr`, or delete the Node whose podCIDR is the same or overlaps; it is tried again',
  },
  RouteNotKept: {
    type: 'Warning',
    objects: NODE,
    cause:
      'the Node is in service by a route that nothing keeps, as `--cluster-cidr`, `--clusterid`, `--route-tables` or `--vpc-id` is wrong; the route and the condition of the Node stay as they are',
    cure: 'correct the setting that the message names',
  },
  RoutesKeptByOther: {
    type: 'Warning',
    objects: LOCK,
    cause:
      'another program keeps the routes of podCIDRs, as the Endpoints `tke-eni-pod-routes` says: ipamd with `--gr-routes=ipamd`. The route controller writes none, whatever `--routes` says',
    cure: 'set `--gr-routes=ccm` of ipamd, or `--routes=none` here; the other one begins within half a minute',
  },
  DeletingNode: {
    type: 'Normal',
    objects: NODE,
    cause: 'the Node was not ready, two complete answers of the cloud lacked its instance, and it was deleted',
    cure: '',
  },
  NodeDeletionHeld: {
    type: 'Warning',
    objects: NODE,
    cause: 'the instance of the Node is gone by the cloud, and the Node is not deleted: the message says why',
    cure: 'delete the Node if it is gone; `--node-release-percent` allows more in an hour, `--vpc-id` names the VPC',
  },
  FieldContested: {
    type: 'Warning',
    objects: ['Service', 'Ingress', 'Pod', 'Node'],
    cause:
      'another client keeps changing back a field that this program writes too, as the status of a Service; it is written at most once a minute until that ends',
    cure: 'find the other client by `metadata.managedFields`, and stop it or let it leave this object alone: another controller of load balancers, a GitOps tool, a script',
  },
  ...BALANCER_EVENTS,
} as const satisfies Readonly<Record<string, EventReason>>;

/** Reason of an event of the cloud controller manager. */
type CcmEventReason = keyof typeof CCM_EVENTS;

/** Records events with the reasons of this program alone. */
export type CcmEvents = EventSink<CcmEventReason>;
