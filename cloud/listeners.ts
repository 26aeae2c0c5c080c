import type { ListenerCertificate } from './certificates.ts';
import type { CallContext } from './cloud.ts';
import type { HealthCheck } from './health-check.ts';
import type { LoadBalancerTask } from './load-balancers.ts';
import type { Rule } from './rules.ts';

/** Most ports of one creation. */
export const PORTS_PER_CREATION = 49;
/** Most listeners of one deletion. */
export const LISTENERS_PER_DELETION = 20;

/** What of a listener can be changed; absent fields as in `HealthCheck`. */
export type ListenerSettings = {
  /** WRR (weighted round robin), LEAST_CONN, IP_HASH. */
  readonly scheduler?: string;
  /** How long a client keeps its target: 30 to 3,600, or 0 for not at all. */
  readonly sessionSeconds?: number;
  /** How long an idle connection is remembered: 10 to 1,980; the cloud has 900 for TCP and 300 for UDP. */
  readonly idleSeconds?: number;
  /** Whether clients of a target that is deregistered are reset, or rescheduled. Many accounts refuse it for UDP. */
  readonly resetsOnDeregister?: boolean;
  /** Of a listener of layer 4; a listener of HTTP or HTTPS has checks, sessions and schedulers in its rules. */
  readonly healthCheck?: HealthCheck;
  /** Of HTTPS: the certificate of the listener, which takes none with SNI. */
  readonly certificate?: ListenerCertificate;
  /** Of HTTPS: whether each domain has a certificate of its own (SNI). The cloud does not take it back. */
  readonly isSni?: boolean;
};

/** A listener of a load balancer. TCP and UDP may have the same port. */
export type Listener = ListenerSettings & {
  readonly listenerId: string;
  readonly name: string;
  /** TCP, UDP; of others also TCP_SSL, QUIC, HTTP, HTTPS. */
  readonly protocol: string;
  readonly port: number;
  /** Last port of a listener of a range. */
  readonly endPort?: number;
  /** Rules of a listener of HTTP or HTTPS; absent for other protocols. */
  readonly rules?: readonly Rule[];
  /** Time of creation, milliseconds since the epoch; 0 when the cloud does not report it. */
  readonly createdAtMs: number;
  /** Why its settings and rules are not known: the cloud's answer has them in a form that is not read. Absent: they are. */
  readonly unread?: string;
};

/** New listeners with the same settings. */
export type ListenerSpec = {
  /** HTTPS needs a certificate, or SNI. */
  readonly protocol: 'TCP' | 'UDP' | 'HTTP' | 'HTTPS';
  /** 1 to `PORTS_PER_CREATION`; names have 1 to 80 characters. */
  readonly ports: readonly { readonly port: number; readonly name: string }[];
  readonly settings: ListenerSettings;
};

/** Listeners of layers 4 and 7. Changes are as those of `LoadBalancerPort`, and settled there. */
export type ListenerPort = {
  /**
   * Returns all listeners of a load balancer, of others too. One that cannot be decoded has its identity alone, and `unread`.
   * @throws CloudError BAD_ANSWER when some are missing, or have no identity
   */
  list(loadBalancerId: string, context: CallContext): Promise<readonly Listener[]>;
  /**
   * Creates a listener for each port, all or none; the ids are in the order of the ports. @throws CloudError `quota` with
   * scope `listeners`; `never` with code InvalidParameter.PortCheckFailed when a port is taken
   */
  create(
    loadBalancerId: string,
    spec: ListenerSpec,
    context: CallContext,
  ): Promise<{ readonly listenerIds: readonly string[]; readonly task: LoadBalancerTask }>;
  /** Changes a listener; protocol and port stay. @throws CloudError `gone` when it does not exist */
  modify(
    loadBalancerId: string,
    listenerId: string,
    changes: ListenerSettings & { readonly name?: string },
    context: CallContext,
  ): Promise<LoadBalancerTask>;
  /**
   * Deletes listeners with their targets, 1 to `LISTENERS_PER_DELETION`, all or none. An empty list is refused with
   * BAD_REQUEST and not sent: the API would delete every listener. @throws CloudError `gone` when one does not exist
   */
  delete(loadBalancerId: string, listenerIds: readonly string[], context: CallContext): Promise<LoadBalancerTask>;
};
