import { boolean, optional, record, required } from '../../../runtime/decode.ts';
import { CERTIFICATES_PER_QUESTION, type Certificate } from '../../certificates.ts';
import { classifyError } from '../../classify-error.ts';
import { COUNT, decodeAnswer, listUpTo, SHORT_NAME, SHORT_TEXT, tagsOf, timeOf, withEmptyList } from './fields.ts';

const MAX_ON_PAGE = 1_000;
const MAX_NAMES = 1_000;
const MAX_USERS = 10_000;
const MAX_TAGS = 1_000;

const TAG = record({ TagKey: required(SHORT_NAME), TagValue: optional(SHORT_TEXT) }, 'ignore');
/** Private keys in an answer are not listed: what is not listed is dropped. */
const CERTIFICATE = record(
  {
    CertificateId: required(SHORT_NAME),
    Alias: optional(SHORT_TEXT),
    Domain: optional(SHORT_TEXT),
    SubjectAltName: optional(listUpTo(MAX_NAMES, SHORT_TEXT)),
    CertBeginTime: optional(SHORT_TEXT),
    CertEndTime: optional(SHORT_TEXT),
    InsertTime: optional(SHORT_TEXT),
    EncryptAlgorithm: optional(SHORT_TEXT),
    From: optional(SHORT_TEXT),
    Tags: optional(listUpTo(MAX_TAGS, TAG)),
  },
  'ignore',
);
const PAGE = record(
  { Certificates: required(listUpTo(MAX_ON_PAGE, CERTIFICATE)), TotalCount: required(COUNT) },
  'ignore',
);

/** Decodes the answer of DescribeCertificates. @throws CloudError BAD_ANSWER */
export function decodeCertificatePage(value: unknown): {
  readonly objects: readonly Certificate[];
  readonly total: number;
} {
  const page = decodeAnswer(PAGE, withEmptyList(value, 'Certificates'), 'DescribeCertificates');
  return { objects: page.Certificates.map(certificateOf), total: page.TotalCount };
}

/** Decodes the answer of DescribeCertificateDetail. @throws CloudError BAD_ANSWER */
export function decodeCertificateDetail(value: unknown): Certificate {
  return certificateOf(decodeAnswer(CERTIFICATE, value, 'DescribeCertificateDetail'));
}

const USER = record({ LoadBalancerId: required(SHORT_NAME) }, 'ignore');
const USED = record({ CertId: required(SHORT_NAME), LoadBalancers: optional(listUpTo(MAX_USERS, USER)) }, 'ignore');
const USERS = record({ CertSet: required(listUpTo(CERTIFICATES_PER_QUESTION, USED)) }, 'ignore');

/** Decodes the answer of DescribeLoadBalancerListByCertId; a certificate that it lacks has no user. @throws CloudError BAD_ANSWER */
export function decodeCertificateUsers(
  value: unknown,
  certIds: readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const users = new Map<string, readonly string[]>(certIds.map((certId) => [certId, []]));
  for (const { CertId, LoadBalancers = [] } of decodeAnswer(USERS, value, 'DescribeLoadBalancerListByCertId').CertSet) {
    const before = users.get(CertId) ?? [];
    users.set(CertId, [...before, ...LoadBalancers.map(({ LoadBalancerId }) => LoadBalancerId)]);
  }
  return users;
}

const UPLOADED = record({ CertificateId: required(SHORT_NAME) }, 'ignore');

/** Decodes the answer of UploadCertificate: the id. @throws CloudError BAD_ANSWER */
export function decodeUploaded(value: unknown): string {
  return decodeAnswer(UPLOADED, value, 'UploadCertificate').CertificateId;
}

const DELETED = record({ DeleteResult: required(boolean) }, 'ignore');

/** Checks the answer of DeleteCertificate. @throws CloudError BAD_ANSWER when it is not deleted yet */
export function requireDeleted(value: unknown): void {
  const action = 'DeleteCertificate';
  if (decodeAnswer(DELETED, value, action).DeleteResult) return;
  throw classifyError({ code: 'BAD_ANSWER', action, text: 'the answer has DeleteResult false' });
}

const UPLOAD = 'upload';

function certificateOf(wire: NonNullable<ReturnType<typeof CERTIFICATE>>): Certificate {
  return {
    certId: wire.CertificateId,
    name: wire.Alias ?? '',
    domain: (wire.Domain ?? '').toLowerCase(),
    altNames: (wire.SubjectAltName ?? []).map((name) => name.toLowerCase()),
    notBeforeMs: timeOf(wire.CertBeginTime),
    notAfterMs: timeOf(wire.CertEndTime),
    createdAtMs: timeOf(wire.InsertTime),
    algorithm: wire.EncryptAlgorithm?.split(' ')[0] ?? '',
    isUploaded: wire.From === UPLOAD,
    tags: tagsOf(wire.Tags?.map(({ TagKey: Key, TagValue: Value = '' }) => ({ Key, Value }))),
  };
}
