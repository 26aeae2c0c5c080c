import type { ListenerCertificate } from '../certificates.ts';

const MODES = { server: 'UNIDIRECTIONAL', both: 'MUTUAL' } as const;

/** Converts the certificates of a listener or domain to the API's fields: one has a field other than several. */
export function certificateRequest({ certIds, caCertId }: ListenerCertificate) {
  const SSLMode = caCertId === undefined ? MODES.server : MODES.both;
  const [CertId, ...others] = certIds;
  if (CertId !== undefined && others.length === 0) {
    return { Certificate: { SSLMode, CertId, ...(caCertId === undefined ? {} : { CertCaId: caCertId }) } };
  }
  // The list has the authority's certificate too.
  const all = [...certIds, ...(caCertId === undefined ? [] : [caCertId])];
  return { MultiCertInfo: { SSLMode, CertList: all.map((id) => ({ CertId: id })) } };
}
