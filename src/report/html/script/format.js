// ---- Figures as people read them: three digits and a unit ----

const threeDigits = (value) => {
  const size = Math.abs(value);
  if (size >= 999.5) return Math.round(value).toLocaleString('en-US');
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
};

const formatTime = (ns) => {
  const size = Math.abs(ns);
  if (size < 999.5) return `${Math.round(ns)} ns`;
  if (size < 999.5e3) return `${threeDigits(ns / 1e3)} µs`;
  if (size < 999.5e6) return `${threeDigits(ns / 1e6)} ms`;
  return `${threeDigits(ns / 1e9)} s`;
};

const formatShare = (share) => {
  if (!(share > 0)) return '0 %';
  if (share < 0.001) return '<0.1 %';
  if (share >= 1) return `${(share * 100).toFixed(share > 1.0005 ? 1 : 0)} %`;
  const text = (share * 100).toFixed(1);
  return text === '100.0' ? '>99.9 %' : `${text} %`; // what falls short of the whole does not read as it
};

const formatCount = (count) => {
  if (Number.isInteger(count)) return count.toLocaleString('en-US');
  return threeDigits(count);
};

const formatSi = (value, unit) => {
  const size = Math.abs(value);
  if (size < 1000) return `${Number.isInteger(value) ? value : threeDigits(value)} ${unit}`.trim();
  const power = Math.min(6, Math.floor(Math.log10(size) / 3));
  return `${threeDigits(value / 1000 ** power)} ${'kMGTPE'[power - 1]}${unit}`;
};

const formatBytes = (bytes) => {
  const size = Math.abs(bytes);
  if (size < 1024) return `${Math.round(bytes)} B`;
  const power = Math.min(5, Math.floor(Math.log2(size) / 10));
  return `${threeDigits(bytes / 1024 ** power)} ${'KMGTP'[power - 1]}iB`;
};

const count = (n, one, many) => `${formatCount(n)} ${n === 1 ? one : many}`;
