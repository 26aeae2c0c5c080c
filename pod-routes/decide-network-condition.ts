/** The body of a strategic patch of `nodes/status`; conditions merge by type, so others stay. */
type NetworkConditionPatch = {
  readonly status: { readonly conditions: readonly Readonly<Record<string, string>>[] };
};

/** As the route controller of Kubernetes' cloud providers writes them: kube-controller-manager makes a taint of it. */
const ROUTED = { status: 'False', reason: 'RouteCreated', message: 'RouteController created a route' } as const;
const NOT_ROUTED = {
  status: 'True',
  reason: 'NoRouteCreated',
  message: 'RouteController failed to create a route',
} as const;

/**
 * Decides the condition NetworkUnavailable of a node with a network for Pods. Undefined: it is up to date. As that
 * controller does, it writes only when the status differs.
 * @see https://github.com/kubernetes/cloud-provider/blob/master/controllers/route/route_controller.go
 */
export function decideNetworkCondition(
  current: { readonly status: string } | undefined,
  isRouted: boolean,
  nowText: string,
): NetworkConditionPatch | undefined {
  const required = isRouted ? ROUTED : NOT_ROUTED;
  if (current?.status === required.status) return undefined;
  return { status: { conditions: [{ type: 'NetworkUnavailable', ...required, lastTransitionTime: nowText }] } };
}
