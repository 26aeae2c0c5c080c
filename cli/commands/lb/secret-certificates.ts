import type { Listener } from '../../../cloud/listeners.ts';
import type { DesiredRuleListener } from '../../../cloud-controller-manager/balancers/desired-rules.ts';
import type { SecretFacts } from '../../../cloud-controller-manager/ingresses/plan-certificates.ts';

const DIGITS = 7;

/**
 * Stands for the certificates of Secrets, which are not read: with a certificate a Secret has its key. Each has an id of
 * its own, so that a plan says where it goes.
 */
export class SecretCertificates {
  /** By `namespace/name`. */
  readonly #ids = new Map<string, string>();
  readonly #names = new Map<string, string>();

  /** What a plan takes for the Secrets of a namespace. */
  secretOf(namespace: string): (name: string) => SecretFacts {
    return (name) => {
      const id = Buffer.from(this.#idOf(`${namespace}/${name}`)).toString('base64');
      return { kind: 'found', type: 'Opaque', data: { qcloud_cert_id: id } };
    };
  }

  /** Names a certificate for people. */
  nameOf(certId: string): string {
    const secret = this.#names.get(certId);
    return secret === undefined ? `certificate ${certId}` : `the certificate of Secret ${secret}`;
  }

  /** The Secrets that listeners have certificates of, in the order of their names. */
  usedIn(listeners: readonly DesiredRuleListener[]): readonly string[] {
    const ids = listeners.flatMap(({ rules }) =>
      rules.flatMap(({ certificate }) => (certificate?.kind === 'existing' ? certificate.ids : [])),
    );
    return [...new Set(ids.flatMap((id) => this.#names.get(id) ?? []))].toSorted();
  }

  /** Leaves the certificate of each domain that has one: whether it is that of the Secret is not known. */
  keepPresent(listeners: readonly DesiredRuleListener[], present: readonly Listener[]): readonly DesiredRuleListener[] {
    return listeners.map((listener) => {
      const its = present.find(({ protocol, port }) => protocol === listener.protocol && port === listener.port);
      const domains = new Set((its?.rules ?? []).map(({ domain }) => domain));
      const rules = listener.rules.map((rule) => {
        const { certificate, domain } = rule;
        const isOfSecret = certificate?.kind === 'existing' && certificate.ids.some((id) => this.#names.has(id));
        return isOfSecret && domains.has(domain) ? { ...rule, certificate: { kind: 'asIs' as const } } : rule;
      });
      return { ...listener, rules };
    });
  }

  #idOf(secret: string): string {
    const id = this.#ids.get(secret) ?? `S${`${this.#ids.size + 1}`.padStart(DIGITS, '0')}`;
    this.#ids.set(secret, id);
    this.#names.set(id, secret);
    return id;
  }
}
