import type { RuleSettings } from '../../cloud/rules.ts';
import type { DesiredTargets } from './desired-targets.ts';

/** A listener of layer 7 that an Ingress asks for. */
export type DesiredRuleListener = {
  readonly protocol: 'HTTP' | 'HTTPS';
  readonly port: number;
  /** In a fixed order; each domain and url once. */
  readonly rules: readonly DesiredRule[];
};

/** A rule of a listener that an Ingress asks for. What is absent is left as it is. */
export type DesiredRule = DesiredTargets & {
  /** The host of requests; '' for the address of the load balancer. A wildcard is `*.example.com`. */
  readonly domain: string;
  /** As the API has it: `/a/` begins with it, `=/a` is exactly it. */
  readonly url: string;
  /** Whether requests whose host has no rule come to this domain. */
  readonly isDefault?: true;
  /** The certificate of the domain, of HTTPS alone and there always: the same for all rules of a domain. */
  readonly certificate?: DesiredCertificate;
  readonly settings: RuleSettings;
  /** The settings of a rule that is made; absent: `settings`. */
  readonly initialSettings?: RuleSettings;
  /** Where its requests are redirected to. It keeps its targets until the redirect is in force, and has none then. */
  readonly redirect?: DesiredRedirect;
  /** Whether it is not made: where it is there, its targets follow, and nothing else of it changes. */
  readonly isPassive?: true;
  /** Whether the redirect that it has, or has not, stays. */
  readonly keepsRedirect?: true;
};

/** A redirect to a rule of the same load balancer, which has none itself. */
export type DesiredRedirect = {
  readonly protocol: 'HTTP' | 'HTTPS';
  readonly port: number;
  readonly domain: string;
  readonly url: string;
  readonly code: 301 | 302 | 307;
};

/**
 * A certificate: one that the cloud has, by its id; one of a Secret, which is uploaded; or the one that the domain has, which
 * stays: what is asked for cannot be used. A rule of a domain that has none is not made then.
 */
export type DesiredCertificate =
  | {
      readonly kind: 'existing';
      /** One id, or two: of RSA and of ECC. */
      readonly ids: readonly string[];
      /** Of the authority that signs the certificates of clients; present: clients must have one. */
      readonly caId?: string;
    }
  | {
      readonly kind: 'own';
      /** SHA-256 of the chain of certificates, 64 hexadecimal digits. The key belongs to the first of them. */
      readonly hash: string;
    }
  | { readonly kind: 'asIs' };
