import type { NodeNetwork } from '../dataplane/network.ts';
import type { Logger } from '../runtime/log.ts';
import {
  findPrimary,
  type HostView,
  type NodeNetworkSettings,
  nodeNetworkOf,
  type PrimaryInterface,
} from './node-network.ts';
import type { NodeState } from './node-state.ts';

/** Dependencies of finding the primary interface. */
type PrimaryFinderDeps = {
  readonly state: NodeState;
  readonly log: Logger;
  readonly readHostView: () => HostView;
  /** Its name; '' takes the device of the default route. */
  readonly configuredName: string;
  readonly settings: NodeNetworkSettings;
};

/** Holds the node's own network as last observed. */
export type PrimaryFinder = {
  /**
   * Observes again. A primary interface that is missing for a moment is retained: its rules must not flap with a DHCP
   * lease.
   */
  observe(): void;
  /** The node as planned, in the rule mode in force; undefined until a primary interface was found. */
  current(): NodeNetwork | undefined;
  primary(): PrimaryInterface | undefined;
};

/** Creates a finder that has not observed yet. */
export function createPrimaryFinder({
  state,
  log,
  readHostView,
  configuredName,
  settings,
}: PrimaryFinderDeps): PrimaryFinder {
  let primary: PrimaryInterface | undefined;
  let isMissingLogged = false;
  return {
    observe: () => {
      const macs = new Set(
        [...(state.supply?.enis ?? []), ...(state.supply?.direct?.enis ?? [])].map(({ mac }) => mac),
      );
      const found = findPrimary(readHostView(), configuredName === '' ? undefined : configuredName, macs);
      if (found === undefined) {
        if (!isMissingLogged)
          log.warn('no primary interface', { wanted: configuredName === '' ? 'default route' : configuredName });
        isMissingLogged = true;
        return;
      }
      isMissingLogged = false;
      if (found.ifindex !== primary?.ifindex) log.info('primary interface', { ...found });
      primary = found;
    },
    current: () => {
      if (primary === undefined) return undefined;
      const subnets = (state.supply?.enis ?? []).flatMap((eni) => eni.primary.map(({ subnetCidr }) => subnetCidr));
      const found = nodeNetworkOf(settings, primary, state.familiesOfNode(), subnets);
      const isExempting = settings.egress === 'node' && state.egressExempt.length > 0;
      return {
        ...found,
        ruleMode: state.ruleMode,
        ...(hasDirect(state) ? { hasDirect: true } : {}),
        ...(settings.serviceCidrs.length === 0 ? { serviceCidrs: state.serviceCidrs } : {}),
        ...(isExempting ? { egressExempt: state.egressExempt } : {}),
      };
    },
    primary: () => primary,
  };
}

/**
 * Tells whether there is a whole ENI, or a Pod with one. The rule for them does no harm without any; a missing rule
 * does.
 */
function hasDirect({ supply, leases }: NodeState): boolean {
  if ((supply?.direct?.enis.length ?? 0) > 0) return true;
  return [...leases.values()].some(({ plugin }) => plugin === 'direct-eni');
}
