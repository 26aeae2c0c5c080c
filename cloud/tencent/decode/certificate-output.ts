import { optional, record } from '../../../runtime/decode.ts';
import type { ListenerCertificate } from '../../certificates.ts';
import { listUpTo, SHORT_TEXT } from './fields.ts';

/** More certificates of one domain than there are algorithms. */
const MAX_CERTIFICATES = 100;

/** The certificates of a listener or rule, as the API writes them. */
export const CERTIFICATE = record(
  {
    CertId: optional(SHORT_TEXT),
    CertCaId: optional(SHORT_TEXT),
    ExtCertIds: optional(listUpTo(MAX_CERTIFICATES, SHORT_TEXT)),
  },
  'ignore',
);

/** Converts certificates of the API; undefined for one that names none. */
export function certificateOf(wire: ReturnType<typeof CERTIFICATE>): ListenerCertificate | undefined {
  const { CertId = '', CertCaId: caCertId = '', ExtCertIds = [] } = wire ?? {};
  const certIds = [...new Set([CertId, ...ExtCertIds])].filter((id) => id !== '' && id !== caCertId);
  return certIds.length === 0 ? undefined : { certIds, ...(caCertId === '' ? {} : { caCertId }) };
}
