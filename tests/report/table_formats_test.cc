// The forms of a table, as text: each with names that mean something else in it.
#include <gtest/gtest.h>

#include <string>

#include <nlohmann/json.hpp>

#include <layertrace/report.h>

#include "report/tables/arrow_abi.h"

namespace layertrace {
namespace {

Table small_table() {
  Table table{"made"};
  table.columns = {
      {"path", "", ColumnKind::kText, false, {std::string("__root__"), std::string("a.b_c")}},
      {"type", "", ColumnKind::kText, false, {std::string("Net"), {}}},
      {"host_ns", "ns", ColumnKind::kReal, false, {1'234'567.5, 1200.0}},
      {"share", "share", ColumnKind::kReal, false, {1.0, 0.1234}},
      {"params", "elements", ColumnKind::kInteger, false, {std::int64_t{1234567}, {}}},
      {"ran", "", ColumnKind::kBoolean, false, {true, false}},
      {"secret", "", ColumnKind::kInteger, true, {std::int64_t{1}, std::int64_t{2}}},
      {"empty_ns", "ns", ColumnKind::kReal, false, {{}, {}}},
  };
  return table;
}

Table one_text(std::string text) {
  Table table{"made"};
  table.columns = {{"name", "", ColumnKind::kText, false, {std::move(text)}}};
  return table;
}

TEST(TableFormats, CsvHasEveryColumnInFull) {
  EXPECT_EQ(to_csv(small_table()),
            "path,type,host_ns,share,params,ran,secret,empty_ns\r\n"
            "__root__,Net,1234567.5,1,1234567,true,1,\r\n"
            "a.b_c,,1200,0.1234,,false,2,\r\n");
}

TEST(TableFormats, CsvQuotesWhatNeedsIt) {
  EXPECT_EQ(to_csv(one_text("a,\"b\"\nc")), "name\r\n\"a,\"\"b\"\"\nc\"\r\n");
  EXPECT_EQ(to_csv(one_text("")), "name\r\n\"\"\r\n");
  EXPECT_EQ(to_csv(one_text(" a")), "name\r\n\" a\"\r\n");
}

TEST(TableFormats, MarkdownNamesUnitsInItsHeadings) {
  EXPECT_EQ(to_markdown(small_table()),
            "| path | type | host (ms) | share (%) | params (elements) | ran |\n"
            "| --- | --- | ---: | ---: | ---: | ---: |\n"
            "| \\_\\_root\\_\\_ | Net | 1.23 | 100 | 1,234,567 | yes |\n"
            "| a.b_c |  | 0.00120 | 12.3 |  | no |\n");
}

TEST(TableFormats, MarkdownEscapesMarkup) {
  EXPECT_EQ(to_markdown(one_text("a|b\n<i>*`_x")),
            "| name |\n| --- |\n| a\\|b\\\\n\\<i>\\*\\`\\_x |\n");
  EXPECT_EQ(to_markdown(one_text("x[2, 3] [a](b)")), "| name |\n| --- |\n| x[2, 3] [a\\](b) |\n");
}

TEST(TableFormats, HtmlEscapesMarkup) {
  EXPECT_EQ(to_html(one_text("<script>\"&")),
            "<table class=\"layertrace\">\n<thead>\n"
            "<tr><th scope=\"col\" style=\"text-align:left\">name</th></tr>\n</thead>\n<tbody>\n"
            "<tr><td style=\"text-align:left\">&lt;script&gt;&quot;&amp;</td></tr>\n"
            "</tbody>\n</table>\n");
}

TEST(TableFormats, LatexIsATabularWithItsSpecialsEscaped) {
  EXPECT_EQ(to_latex(one_text("a_b & 50% {x}\\y~^#$ 3×3 [0]")),
            "\\begin{tabular}{l}\n\\hline\nname \\\\\n\\hline\n"
            "a\\_b \\& 50\\% \\{x\\}\\textbackslash{}y\\textasciitilde{}\\textasciicircum{}\\#\\$ "
            "3$\\times$3 {[}0{]} \\\\\n\\hline\n\\end{tabular}\n");
  EXPECT_EQ(to_latex(small_table()).find("\\begin{tabular}{llrrrr}\n"), 0u);
}

TEST(TableFormats, SayWhatAReaderMustKnow) {
  Table table = one_text("a");
  table.note = "Simulated: on a <made> GPU";
  EXPECT_TRUE(to_markdown(table).starts_with("*Simulated: on a \\<made> GPU*\n\n| name |\n"));
  EXPECT_NE(to_html(table).find("<caption>Simulated: on a &lt;made&gt; GPU</caption>"),
            std::string::npos);
  EXPECT_NE(to_latex(table).find("\\multicolumn{1}{l}{Simulated: on a \\textless{}made"),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(to_json(table))["note"], table.note);
  EXPECT_FALSE(nlohmann::json::parse(to_json(one_text("a"))).contains("note"));
  EXPECT_NE(to_parquet(table).find("layertrace.note"), std::string::npos);
  EXPECT_NE(to_parquet(table).find(table.note), std::string::npos);
  // A number of pairs, then each text behind its size.
  const std::size_t size = 4 + std::string("0000layertrace.table0000made").size() +
                           std::string("0000layertrace.note0000").size() + table.note.size();
  const std::string metadata(arrow_schema(table)->metadata, size);
  EXPECT_EQ(metadata.substr(0, 4), std::string("\2\0\0\0", 4));
  EXPECT_NE(metadata.find("layertrace.note"), std::string::npos);
  EXPECT_TRUE(metadata.ends_with(table.note));
}

TEST(TableFormats, SaySeveralThingsLineByLine) {
  Table table = one_text("a");
  table.note = "one\ntwo <2>";
  EXPECT_TRUE(to_markdown(table).starts_with("*one*\n\n*two \\<2>*\n\n| name |\n"));
  EXPECT_NE(to_html(table).find("<caption>one<br>two &lt;2&gt;</caption>"), std::string::npos);
  EXPECT_NE(to_latex(table).find("\\multicolumn{1}{l}{one} \\\\\n\\multicolumn{1}{l}{two "),
            std::string::npos);
}

TEST(TableFormats, FiguresOfPeopleHaveThreeDigits) {
  Table table{"made"};
  table.columns = {{"n_bytes",
                    "bytes",
                    ColumnKind::kReal,
                    false,
                    {9.999 * 1024, 99.96 * 1024, 1024.0, 0.0, 1.0}}};
  EXPECT_EQ(to_markdown(table),
            "| n (KiB) |\n| ---: |\n| 10.0 |\n| 100 |\n| 1 |\n| 0 |\n| 0.000977 |\n");
}

TEST(TableFormats, JsonSaysKindsAndUnits) {
  const auto json = nlohmann::json::parse(to_json(small_table()));
  EXPECT_EQ(json["table"], "made");
  EXPECT_EQ(json["columns"][2],
            (nlohmann::json{{"name", "host_ns"}, {"kind", "real"}, {"unit", "ns"}}));
  EXPECT_EQ(json["columns"][0]["unit"], nullptr);
  EXPECT_EQ(json["rows"][0]["host_ns"], 1234567.5);
  EXPECT_EQ(json["rows"][1]["type"], nullptr);
  EXPECT_EQ(json["rows"][1]["ran"], false);
  EXPECT_EQ(json["rows"].size(), 2u);
}

TEST(TableFormats, BytesThatAreNoTextDoNotBreakAForm) {
  const Table table = one_text(
      "a\xff"
      "b");
  EXPECT_EQ(nlohmann::json::parse(to_json(table))["rows"][0]["name"], "a\uFFFDb");
  EXPECT_EQ(to_csv(table), "name\r\na\uFFFDb\r\n");
  EXPECT_NE(to_parquet(table).find("a\uFFFDb"), std::string::npos);
}

TEST(TableFormats, AValueOfAnotherKindIsNothing) {
  Table table{"made"};
  table.columns = {{"n", "", ColumnKind::kInteger, false, {std::string("x"), 1.5, true, {}}},
                   {"x", "", ColumnKind::kReal, false, {std::int64_t{2}, 1.0 / 0.0, 0.5, {}}}};
  EXPECT_EQ(to_csv(table), "n,x\r\n,2\r\n,\r\n,0.5\r\n,\r\n");
}

TEST(TableFormats, EmptyTablesAreValid) {
  Table table{"made"};
  table.columns = {{"a_ns", "ns", ColumnKind::kReal, false, {}}, {"b", "", ColumnKind::kText}};
  EXPECT_EQ(to_csv(table), "a_ns,b\r\n");
  EXPECT_EQ(to_markdown(table), "| a (ns) | b |\n| ---: | --- |\n");
  EXPECT_EQ(nlohmann::json::parse(to_json(table))["rows"], nlohmann::json::array());
  EXPECT_EQ(to_parquet(table).substr(0, 4), "PAR1");
}

TEST(TableFormats, AreNamed) {
  EXPECT_EQ(*parse_table_format("md"), TableFormat::kMarkdown);
  EXPECT_EQ(*parse_table_format("tex"), TableFormat::kLatex);
  EXPECT_EQ(parse_table_format("xml").error().message(),
            "cannot use \"xml\" as a format of a table: no such name. Use one of: json, csv, md, "
            "html, latex, parquet");
  EXPECT_EQ(parse_table_kind("rows").error().remedy,
            "Use one of: layers, kernels, operators, calls, steps, parameters, sizes, ledger, "
            "metrics");
  EXPECT_EQ(write(small_table(), TableFormat::kCsv), to_csv(small_table()));
}

// As a consumer does: a child is taken out of its batch and outlives it.
TEST(TableFormats, ArrowChildrenOutliveTheirBatch) {
  auto stream = arrow_stream(small_table());
  ArrowSchema schema{};
  ArrowArray batch{};
  ASSERT_EQ(stream->get_schema(stream.get(), &schema), 0);
  ASSERT_EQ(stream->get_next(stream.get(), &batch), 0);
  EXPECT_EQ(schema.n_children, 8);
  EXPECT_STREQ(schema.children[2]->name, "host_ns");
  EXPECT_STREQ(schema.children[2]->format, "g");
  ArrowArray taken = *batch.children[2];
  batch.children[2]->release = nullptr;
  batch.release(&batch);
  EXPECT_EQ(batch.release, nullptr);
  EXPECT_EQ(static_cast<const double*>(taken.buffers[1])[0], 1'234'567.5);
  taken.release(&taken);
  ASSERT_EQ(stream->get_next(stream.get(), &batch), 0);
  EXPECT_EQ(batch.release, nullptr);  // the end
  stream.reset();
  schema.release(&schema);
}

}  // namespace
}  // namespace layertrace
