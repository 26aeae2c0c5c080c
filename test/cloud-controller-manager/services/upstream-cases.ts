/** A test of this repository, by its file and title, in which `*` stands for what the test is made for. */
type Shown = readonly [file: string, title: string];

/** A case of upstream's tests of load balancers, and what becomes of it here. */
type UpstreamCase = {
  readonly name: string;
  /** Tests that show it. */
  readonly shown: readonly Shown[];
  /** What is refused of it, by an event with this reason; a test among `shown` sees the event. */
  readonly refused?: { readonly what: string; readonly event: string };
};

const SERVICES = 'test/cloud-controller-manager/services';
const CASES = `${SERVICES}/upstream-cases.test.ts`;
const STORIES = 'test/simulation/stories/services.ts';
const ROLLING = 'test/e2e/rolling-update.long.test.ts';
const LOCAL = 'test/e2e/local-policy.long.test.ts';
const PAGE = 'test/e2e/client-address.test.ts';
const SESSION: Shown = [
  'test/vpc/clb/clb-pods.long.test.ts',
  'session persistence: one client has one target, while others have theirs',
];
const REPLACED: Shown = [ROLLING, 'Pods that * at SIGTERM are replaced: no request fails'];
const AFFINITY: Shown = [CASES, 'affinity is the session of the listener, and may be switched, with the policy *'];
const NO_UDP_LOCAL = {
  what: 'UDP with externalTrafficPolicy Local, which no health check can ask for Pods; with direct access it is served',
  event: 'ServiceRefused',
} as const;

/** All cases of Kubernetes 1.33, test/e2e/network/loadbalancer.go, `[Feature:LoadBalancer]`. */
export const LOAD_BALANCERS: readonly UpstreamCase[] = [
  {
    name: 'should be able to change the type and ports of a TCP service',
    shown: [
      [CASES, 'type, node port and port of a * Service change, and its address stays as long as it has one'],
      [CASES, 'a * Service with direct access has no targets without Pods, and has them again'],
    ],
  },
  {
    name: 'should be able to change the type and ports of a UDP service',
    shown: [
      [CASES, 'type, node port and port of a * Service change, and its address stays as long as it has one'],
      [CASES, 'a * Service with direct access has no targets without Pods, and has them again'],
    ],
  },
  {
    name: 'should only allow access from service loadbalancer source ranges',
    shown: [
      [STORIES, 'a Service with source ranges is never open, and no security group is left'],
      ['test/e2e/source-ranges.long.test.ts', 'a client of the source ranges reaches the Pod, and no other one does'],
    ],
  },
  {
    name: 'should have session affinity work for LoadBalancer service with Local traffic policy [LinuxOnly]',
    shown: [AFFINITY, SESSION],
  },
  {
    name: 'should be able to switch session affinity for LoadBalancer service with Local traffic policy [LinuxOnly]',
    shown: [AFFINITY],
  },
  {
    name: 'should have session affinity work for LoadBalancer service with Cluster traffic policy [LinuxOnly]',
    shown: [AFFINITY, SESSION],
  },
  {
    name: 'should be able to switch session affinity for LoadBalancer service with Cluster traffic policy [LinuxOnly]',
    shown: [AFFINITY],
  },
  {
    name: 'should handle load balancer cleanup finalizer for service',
    shown: [[CASES, 'the finalizer is there as long as the Service has a load balancer']],
  },
  {
    name: 'should be able to create LoadBalancer Service without NodePort and change it',
    shown: [
      [CASES, 'a Service with direct access needs no node port, and gets one without another address'],
      [CASES, 'a Service without node ports and without direct access is refused by event until it has them'],
    ],
  },
  {
    name: 'should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on different nodes',
    shown: [REPLACED],
  },
  {
    name: 'should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on the same nodes',
    shown: [[PAGE, 'a Pod is replaced behind a direct Service: no request fails'], REPLACED],
  },
  {
    name: 'should not have connectivity disruption during rolling update with externalTrafficPolicy=Cluster',
    shown: [REPLACED],
  },
  {
    name: 'should not have connectivity disruption during rolling update with externalTrafficPolicy=Local',
    shown: [REPLACED],
  },
];

/** Those of `ExternalTrafficPolicy: Local`, in the same file. */
export const LOCAL_POLICY: readonly UpstreamCase[] = [
  {
    name: 'should work for type=LoadBalancer',
    shown: [
      [LOCAL, 'the policy Local: a Pod sees the address of the client'],
      [CASES, 'the policy flips between Cluster and Local, and UDP with Local is refused by event'],
    ],
    refused: NO_UDP_LOCAL,
  },
  {
    name: 'should only target nodes with endpoints',
    shown: [[LOCAL, 'the policy Local: only a Node with a Pod of the Service gets connections']],
  },
  {
    name: 'should target all nodes with endpoints',
    shown: [[LOCAL, 'the policy Local: each Node with a Pod of the Service gets connections']],
  },
  {
    name: 'should work from pods',
    shown: [[LOCAL, 'the policy Local: a Pod that asks the load balancer is seen by its own address']],
  },
];
