/**
 * Reports whether a Service of type LoadBalancer is ours by its class: a Service without one is, and one of `served`.
 * @param its `spec.loadBalancerClass` of the Service
 * @param served the class that is served beside Services without one (`--load-balancer-class`); '' for none
 */
export function isServedClass(its: string | undefined, served: string): boolean {
  return its === undefined || (served !== '' && its === served);
}
