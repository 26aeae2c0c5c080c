import type { DescribeLoadBalancerListByCertIdResponse } from 'tencentcloud-sdk-nodejs/tencentcloud/services/clb/v20180317/clb_models.js';
import type {
  Certificates,
  DeleteCertificateResponse,
  DescribeCertificateDetailResponse,
  DescribeCertificatesResponse,
  UploadCertificateResponse,
} from 'tencentcloud-sdk-nodejs/tencentcloud/services/ssl/v20191205/ssl_models.js';
import { ApiError } from './api-error.ts';
import type { ActionTable, ModelCall } from './call.ts';
import { type ModelCertificate, readPem } from './certificate-book.ts';
import { certificatesOf } from './clb/layer7.ts';
import { writtenTime } from './limits.ts';
import type { Params } from './params.ts';

const MOST_PEM = 65_536;
const MOST_NAME = 200;
const MOST_ON_PAGE = 1_000;
const MOST_TAGS = 20;
const MOST_ASKED = 20;
const STATUS = { issued: 1, expired: 3 } as const;

/** The APIs of certificates. Parameters that are not listed are refused. */
export const CERTIFICATE_ACTIONS: ActionTable = {
  UploadCertificate: {
    required: ['CertificatePublicKey'],
    optional: ['CertificatePrivateKey', 'CertificateType', 'Alias', 'Tags', 'Repeatable'],
    handle: uploadCertificate,
  },
  DescribeCertificates: {
    required: [],
    optional: ['Offset', 'Limit', 'SearchKey', 'CertificateType', 'Tags', 'CertIds'],
    handle: describeCertificates,
  },
  DescribeCertificateDetail: { required: ['CertificateId'], optional: [], handle: describeDetail },
  DeleteCertificate: { required: ['CertificateId'], optional: [], handle: deleteCertificate },
};

/** Uploads a certificate: with Repeatable false, one that the account has is not kept twice. */
function uploadCertificate({ state, params }: ModelCall): Partial<UploadCertificateResponse> {
  const chain = params.text('CertificatePublicKey', MOST_PEM);
  const type = params.choice('CertificateType', ['SVR', 'CA'], 'SVR');
  const key = params.text('CertificatePrivateKey', MOST_PEM);
  if (type === 'SVR' && key === '') {
    throw new ApiError('FailedOperation.CertificateMismatch', 'A server certificate needs its private key.');
  }
  const facts = readPem(chain, key);
  const known = state.certificates.all().find((one) => one.chain === chain);
  if (known !== undefined && params.flag('Repeatable') === false) {
    return { CertificateId: known.certId, RepeatCertId: known.certId };
  }
  if (state.certificates.all().length >= state.clb.limits.certificates) {
    throw new ApiError('LimitExceeded', `The quota of certificates is ${state.clb.limits.certificates}.`);
  }
  const certId = state.nextId('cert');
  const alias = params.text('Alias', MOST_NAME);
  const tags = readTags(params);
  state.certificates.put({ ...facts, certId, alias, type, chain, key, tags, insertedAtMs: state.nowMs });
  return { CertificateId: certId, RepeatCertId: '' };
}

/** Answers DescribeCertificates, by pages. */
function describeCertificates({ state, params }: ModelCall): Partial<DescribeCertificatesResponse> {
  const type = params.text('CertificateType');
  const search = params.text('SearchKey');
  const ids = params.texts('CertIds', MOST_ON_PAGE);
  const wanted = Object.entries(readTags(params));
  const found = state.certificates
    .all()
    .filter(
      (one) =>
        (type === '' || one.type === type) &&
        (ids.length === 0 || ids.includes(one.certId)) &&
        [one.certId, one.alias, one.domain].some((text) => text.includes(search)) &&
        wanted.every(([key, value]) => one.tags[key] === value),
    );
  const offset = params.integer('Offset', 0, 0, Number.MAX_SAFE_INTEGER);
  const page = found.slice(offset, offset + params.integer('Limit', 20, 1, MOST_ON_PAGE));
  return { TotalCount: found.length, Certificates: page.map((one) => wireCertificate(one, state.nowMs)) };
}

/** Answers DescribeCertificateDetail, without the private key. */
function describeDetail({ state, params }: ModelCall): Partial<DescribeCertificateDetailResponse> {
  const found = state.certificates.certificate(params.text('CertificateId'));
  return {
    ...wireCertificate(found, state.nowMs),
    CertificatePublicKey: found.chain,
  } as DescribeCertificateDetailResponse;
}

/** Answers DescribeLoadBalancerListByCertId: certificates that are used, with the load balancers that use them. */
export function describeUsers({ state, params }: ModelCall): Partial<DescribeLoadBalancerListByCertIdResponse> {
  const certIds = params.texts('CertIds', MOST_ASKED);
  const balancers = [...state.clb.balancers().values()];
  const CertSet = certIds.map((CertId) => ({
    CertId,
    LoadBalancers: balancers
      .filter((balancer) => certificatesOf(balancer).has(CertId))
      .map(({ loadBalancerId }) => ({ LoadBalancerId: loadBalancerId })),
  }));
  return { CertSet: CertSet.filter(({ LoadBalancers }) => LoadBalancers.length > 0) as never };
}

/** Answers DeleteCertificate. What a listener shows stays. */
function deleteCertificate({ state, params }: ModelCall): Partial<DeleteCertificateResponse> {
  const { certId } = state.certificates.certificate(params.text('CertificateId'));
  const users = [...state.clb.balancers().values()].filter((balancer) => certificatesOf(balancer).has(certId));
  if (users.length > 0) {
    const ids = users.map(({ loadBalancerId }) => loadBalancerId).join(', ');
    throw new ApiError('FailedOperation.DeleteResourceFailed', `The certificate ${certId} is used by ${ids}.`);
  }
  state.certificates.remove(certId);
  return { DeleteResult: true, TaskId: '' };
}

function readTags(params: Params): Readonly<Record<string, string>> {
  const tags = params.parts('Tags', MOST_TAGS, ['TagKey'], ['TagValue']);
  return Object.fromEntries(tags.map((tag) => [tag.text('TagKey', 127), tag.text('TagValue', 255)]));
}

function wireCertificate(one: ModelCertificate, nowMs: number): Certificates {
  return {
    CertificateId: one.certId,
    CertificateType: one.type,
    From: 'upload',
    Alias: one.alias,
    Domain: one.domain,
    SubjectAltName: [...one.altNames],
    Status: one.notAfterMs > nowMs ? STATUS.issued : STATUS.expired,
    EncryptAlgorithm: one.algorithm,
    CertBeginTime: writtenTime(one.notBeforeMs),
    CertEndTime: writtenTime(one.notAfterMs),
    InsertTime: writtenTime(one.insertedAtMs),
    Tags: Object.entries(one.tags).map(([TagKey, TagValue]) => ({ TagKey, TagValue })),
  };
}
