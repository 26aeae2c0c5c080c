import { IDS_PER_CALL } from '../batches.ts';
import { CERTIFICATES_PER_QUESTION, type CertificatePort, type CertificateQuery } from '../certificates.ts';
import type { Tags } from '../cloud.ts';
import type { Caller } from './caller.ts';
import {
  decodeCertificateDetail,
  decodeCertificatePage,
  decodeCertificateUsers,
  decodeUploaded,
  requireDeleted,
} from './decode/certificate.ts';
import { readPages } from './paged.ts';
import { requireCount } from './require-count.ts';

/** Most characters of a chain. */
const MAX_CHAIN = 65_536;
/** Server certificates; the others are those of authorities. */
const SERVER = 'SVR';

/** Creates the certificate part of the port. */
export function createCertificatePort(call: Caller): CertificatePort {
  return {
    upload: async ({ name, chain, privateKey, tags }, context) => {
      const action = 'UploadCertificate';
      requireCount(action, 'characters of a chain', chain.length, MAX_CHAIN);
      const request = {
        CertificatePublicKey: chain,
        CertificatePrivateKey: privateKey.reveal(),
        CertificateType: SERVER,
        Alias: name,
        Repeatable: true,
        ...(tags === undefined ? {} : { Tags: wireTags(tags) }),
      };
      return decodeUploaded(await call(action, request, context));
    },
    find: async (query, context) => {
      const request = { ...findRequest(query), CertificateType: SERVER, Limit: IDS_PER_CALL };
      const readPage = async (Offset: number) =>
        decodeCertificatePage(await call('DescribeCertificates', { ...request, Offset }, context));
      const { objects, isConsistent } = await readPages(readPage, ({ certId }) => certId);
      return { certificates: objects, isConsistent };
    },
    describe: async (certId, context) =>
      decodeCertificateDetail(await call('DescribeCertificateDetail', { CertificateId: certId }, context)),
    usersOf: async (certIds, context) => {
      const action = 'DescribeLoadBalancerListByCertId';
      requireCount(action, 'certificates', certIds.length, CERTIFICATES_PER_QUESTION);
      return decodeCertificateUsers(await call(action, { CertIds: [...certIds] }, context), certIds);
    },
    delete: async (certId, context) =>
      requireDeleted(await call('DeleteCertificate', { CertificateId: certId }, context)),
  };
}

function findRequest({ tag, search }: CertificateQuery) {
  return {
    ...(tag === undefined ? {} : { Tags: wireTags({ [tag.key]: tag.value }) }),
    ...(search === undefined ? {} : { SearchKey: search }),
  };
}

function wireTags(tags: Tags) {
  return Object.entries(tags).map(([TagKey, TagValue]) => ({ TagKey, TagValue }));
}
