import type { ListenerCertificate } from './certificates.ts';
import type { CallContext } from './cloud.ts';
import type { HealthCheck } from './health-check.ts';
import type { LoadBalancerTask } from './load-balancers.ts';

/** Most rules of one creation or deletion. */
export const RULES_PER_CHANGE = 50;

/** What of a rule can be changed; absent fields as in `HealthCheck`. */
export type RuleSettings = {
  /** WRR (weighted round robin), LEAST_CONN, IP_HASH. */
  readonly scheduler?: string;
  /** How long a client keeps its target, by a cookie: 30 to 86,400, or 0 for not at all. */
  readonly sessionSeconds?: number;
  /** The kinds TCP and HTTP exist here. */
  readonly healthCheck?: HealthCheck;
  /** What the targets speak: HTTP, HTTPS, GRPC, GRPCS. */
  readonly forwardType?: string;
};

/** A rule of a listener of HTTP or HTTPS: requests for its domain and path go to its targets. */
export type Rule = RuleSettings & {
  /** The API's LocationId: `loc-…`. */
  readonly ruleId: string;
  /** Lower case, with `*` for a wildcard; '' for a rule of the address of the load balancer. */
  readonly domain: string;
  /** `/prefix`, `=/exact`, `~regex` or `~*regex` (letters of either case). */
  readonly url: string;
  /** Whether requests for no other domain go to this rule's domain. */
  readonly isDefault: boolean;
  /** The certificate of its domain, of a listener with SNI; absent: none of its own. */
  readonly certificate?: ListenerCertificate;
  /** Where requests are redirected; absent: nowhere. */
  readonly rewriteTo?: { readonly listenerId: string; readonly ruleId: string };
  /** Time of creation, milliseconds since the epoch; 0 when the cloud does not report it. */
  readonly createdAtMs: number;
};

/** A new rule. What is left out has the cloud's default. */
export type RuleSpec = {
  /** 1 to 80 characters, with `*` for a wildcard at one end; '': the address of the load balancer. */
  readonly domain: string;
  /** 1 to 200 characters: `/prefix`, `=/exact`, `~regex` or `~*regex`. */
  readonly url: string;
  readonly settings: RuleSettings;
  /** Of its domain; only on a listener with SNI, and the same for each rule of a domain. */
  readonly certificate?: ListenerCertificate;
  /** Whether its domain becomes the default domain, in the place of the present one. */
  readonly isDefault?: boolean;
};

/** What of a domain of a listener can be changed; what is left out stays. */
type DomainChanges = {
  readonly certificate?: ListenerCertificate;
  /** Makes this domain the default one. */
  readonly isDefault?: true;
};

/**
 * Rules of listeners of HTTP and HTTPS; `ListenerPort.list` returns them. Changes are as those of `LoadBalancerPort`, and
 * settled there. A domain and path are unique in a listener, so that a creation with an unknown outcome is found by them.
 * @see https://www.tencentcloud.com/document/product/214/30691 CreateRule, and its siblings
 */
export type RulePort = {
  /**
   * Creates 1 to `RULES_PER_CHANGE` rules of a listener, all or none; the ids are in the order of the specs. @throws
   * CloudError `quota` with scope `rules`; `resolve` when a rule of the very domain and path exists
   */
  create(
    loadBalancerId: string,
    listenerId: string,
    specs: readonly RuleSpec[],
    context: CallContext,
  ): Promise<{ readonly ruleIds: readonly string[]; readonly task: LoadBalancerTask }>;
  /** Changes a rule; its domain and path stay. @throws CloudError `gone` when it does not exist */
  modify(
    loadBalancerId: string,
    listenerId: string,
    ruleId: string,
    changes: RuleSettings,
    context: CallContext,
  ): Promise<LoadBalancerTask>;
  /**
   * Changes a domain that rules of a listener have. The domain '' is refused with BAD_REQUEST: it has no certificate, and
   * becomes the default one by the creation of its rule. @throws CloudError `gone` when no rule has it
   */
  modifyDomain(
    loadBalancerId: string,
    listenerId: string,
    domain: string,
    changes: DomainChanges,
    context: CallContext,
  ): Promise<LoadBalancerTask>;
  /**
   * Deletes 1 to `RULES_PER_CHANGE` rules with their targets and redirects, all or none. An empty list, or an empty id, is
   * refused with BAD_REQUEST and not sent. `newDefaultDomain` is needed when the default domain loses its last rule and
   * other rules remain. @throws CloudError `gone` when one does not exist
   */
  delete(
    loadBalancerId: string,
    listenerId: string,
    ruleIds: readonly string[],
    context: CallContext,
    newDefaultDomain?: string,
  ): Promise<LoadBalancerTask>;
};
