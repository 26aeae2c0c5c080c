import type { Hop } from './explanation.ts';
import type { Service } from './find-service.ts';
import { hopOf, unknownHop } from './hop.ts';

/** Number of backends that are printed; a Service may have hundreds. */
const MAX_NAMED = 5;

/**
 * Builds the hop where the destination is replaced by another address, before the packet is routed.
 * @param backend the backend with which the path continues; undefined: the path ends here
 */
export function serviceHop(service: Service, title: string, backend: string | undefined): Hop {
  const { ip, by, backends, isKubeProxy, refusal } = service;
  const named = backends.slice(0, MAX_NAMED).join(', ');
  const more = backends.length > MAX_NAMED ? ` and ${backends.length - MAX_NAMED} more` : '';
  const fields = {
    kind: 'nft' as const,
    element: `service:${ip}`,
    title: isKubeProxy ? `${ip} is a Service: kube-proxy rewrites it` : `some ports of ${ip} are redirected`,
    details: [`by ${by}; ports are not looked at`, backends.length === 0 ? undefined : `backends: ${named}${more}`],
  };
  if (!isKubeProxy) return hopOf({ ...fields, details: [...fields.details, `walked on to ${ip} itself`] });
  if (refusal !== undefined) {
    const why =
      refusal === 'rejected'
        ? 'it has no backends: packets are refused'
        : 'it has no backends on this node, and its traffic policy is Local: packets are dropped';
    return unknownHop(fields, why, 'kubectl get endpointslices -A');
  }
  if (backend !== undefined) {
    return hopOf({ ...fields, details: [...fields.details, `walked on to ${backend}; for another: --to of it`] });
  }
  const why = backends.length > 0 ? `its only backend is ${title} itself` : 'its backends cannot be read here';
  const next = `find its backends (kubectl get endpointslices -A, ipvsadm -Ln) and ask with --to of one`;
  return unknownHop(fields, why, next);
}
