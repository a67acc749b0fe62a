// libmodsecurity as the benchmark's peer: loads a rule set, keeps cases, and says how long a transaction takes.
//
//     peer FILE...          the configuration files in their order
//
// It speaks lines over standard input and output. After `ready NANOSECONDS VERSION` (how long the rules took to load, and
// what loaded them) it takes
//
//     case N                followed by N fields, each a line with its length and then so many bytes:
//                           client address, client port, method, uri, protocol version, request body, status,
//                           response body, the number of request headers, their names and values in turns, and
//                           the names and values of the response headers. It has no answer.
//     matched CASE          answers `STATUS ID...`: the status of an intervention or 0, and the rules that were logged
//     measure CASE COUNT NS answers `NANOSECONDS...`: that many transactions, or fewer where NS nanoseconds pass before;
//                           at least one. What is told is the time that the thread ran
//     load                  answers `NANOSECONDS`: once more from the files
//
// and ends where its input does.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <time.h>

// Behind the standard headers, which these use and do not all include.
#include <modsecurity/intervention.h>
#include <modsecurity/modsecurity.h>
#include <modsecurity/rule_message.h>
#include <modsecurity/rules_set.h>
#include <modsecurity/transaction.h>

namespace {

using Clock = std::chrono::steady_clock;
using Headers = std::vector<std::pair<std::string, std::string>>;

struct Case {
    std::string client_address;
    int client_port = 0;
    std::string method;
    std::string uri;
    std::string version;
    std::string body;
    int status = 0;
    std::string response_body;
    Headers headers;
    Headers response_headers;
};

const unsigned char *bytes(const std::string &text) {
    return reinterpret_cast<const unsigned char *>(text.data());
}

// How long this thread has run, in nanoseconds: what others do on the machine at the same time is not in it.
std::int64_t ran() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// The library hands every logged match to this; without a list to put it in, nobody wants to know.
void logged(void *list, const void *message) {
    if (list != nullptr) {
        static_cast<std::vector<int> *>(list)->push_back(
            static_cast<const modsecurity::RuleMessage *>(message)->m_ruleId);
    }
}

// The status that the rules want to answer with; 0 for none.
int refused(modsecurity::Transaction &transaction) {
    modsecurity::ModSecurityIntervention wanted;
    wanted.status = 200;
    wanted.pause = 0;
    wanted.url = nullptr;
    wanted.log = nullptr;
    wanted.disruptive = 0;
    if (!transaction.intervention(&wanted)) {
        return 0;
    }
    std::free(wanted.url);
    std::free(wanted.log);
    return wanted.disruptive != 0 ? wanted.status : 0;
}

// The phases up to the first intervention, as a gateway that carries it out would run them.
int phases(modsecurity::Transaction &transaction, const Case &one) {
    transaction.processConnection(one.client_address.c_str(), one.client_port, "198.51.100.1", 443);
    transaction.processURI(one.uri.c_str(), one.method.c_str(), one.version.c_str());
    for (const auto &[name, value] : one.headers) {
        transaction.addRequestHeader(bytes(name), name.size(), bytes(value), value.size());
    }
    transaction.processRequestHeaders();
    if (const int status = refused(transaction)) {
        return status;
    }
    if (!one.body.empty()) {
        transaction.appendRequestBody(bytes(one.body), one.body.size());
    }
    transaction.processRequestBody();
    if (const int status = refused(transaction)) {
        return status;
    }
    for (const auto &[name, value] : one.response_headers) {
        transaction.addResponseHeader(bytes(name), name.size(), bytes(value), value.size());
    }
    transaction.processResponseHeaders(one.status, "HTTP/" + one.version);
    if (const int status = refused(transaction)) {
        return status;
    }
    transaction.appendResponseBody(bytes(one.response_body), one.response_body.size());
    transaction.processResponseBody();
    return refused(transaction);
}

class Peer {
 public:
    explicit Peer(std::vector<std::string> files) : files_(std::move(files)) {
        engine_.setConnectorInformation("palisade-bench-waf");
        engine_.setServerLogCb(logged, modsecurity::RuleMessageLogProperty);
    }

    // Loads the rules in place of those that were loaded before; how long that took, in nanoseconds.
    std::int64_t load() {
        rules_.reset();
        const auto began = ran();
        auto rules = std::make_unique<modsecurity::RulesSet>();
        for (const auto &file : files_) {
            if (rules->loadFromUri(file.c_str()) < 0) {
                throw std::runtime_error(file + ": " + rules->getParserError());
            }
        }
        rules_ = std::move(rules);
        return ran() - began;
    }

    std::string version() { return engine_.whoAmI(); }

    void serve(std::istream &in, std::ostream &out) {
        std::string line;
        while (std::getline(in, line)) {
            std::istringstream words(line);
            std::string command;
            words >> command;
            if (command == "case") {
                std::size_t fields = 0;
                words >> fields;
                cases_.push_back(read_case(in, fields));
                continue;
            }
            if (command == "load") {
                out << load() << std::endl;
                continue;
            }
            std::size_t place = 0;
            words >> place;
            const Case &one = cases_.at(place);
            if (command == "matched") {
                std::vector<int> ids;
                out << run(one, &ids);
                for (const int id : ids) {
                    out << ' ' << id;
                }
            } else if (command == "measure") {
                std::size_t count = 0;
                std::int64_t budget = 0;
                words >> count >> budget;
                std::vector<std::int64_t> times;
                times.reserve(count);
                const auto until = Clock::now() + std::chrono::nanoseconds(budget);
                do {
                    const auto now = ran();
                    run(one, nullptr);
                    times.push_back(ran() - now);
                } while (times.size() < count && Clock::now() < until);
                for (const auto time : times) {
                    out << time << ' ';
                }
            } else {
                throw std::runtime_error("no such command: " + line);
            }
            out << std::endl;
        }
    }

 private:
    int run(const Case &one, std::vector<int> *ids) {
        modsecurity::Transaction transaction(&engine_, rules_.get(), ids);
        const int status = phases(transaction, one);
        transaction.processLogging();
        return status;
    }

    static std::string read_field(std::istream &in) {
        std::string line;
        std::getline(in, line);
        std::string field(std::stoul(line), '\0');
        in.read(field.data(), static_cast<std::streamsize>(field.size()));
        if (!in) {
            throw std::runtime_error("the input ends within a case");
        }
        return field;
    }

    static Case read_case(std::istream &in, std::size_t count) {
        std::vector<std::string> fields;
        for (std::size_t at = 0; at < count; ++at) {
            fields.push_back(read_field(in));
        }
        Case one;
        one.client_address = fields.at(0);
        one.client_port = std::stoi(fields.at(1));
        one.method = fields.at(2);
        one.uri = fields.at(3);
        one.version = fields.at(4);
        one.body = fields.at(5);
        one.status = std::stoi(fields.at(6));
        one.response_body = fields.at(7);
        const std::size_t split = 9 + 2 * std::stoul(fields.at(8));
        for (std::size_t at = 9; at + 1 < fields.size(); at += 2) {
            (at < split ? one.headers : one.response_headers).emplace_back(fields[at], fields[at + 1]);
        }
        return one;
    }

    std::vector<std::string> files_;
    modsecurity::ModSecurity engine_;
    std::unique_ptr<modsecurity::RulesSet> rules_;
    std::vector<Case> cases_;
};

}  // namespace

int main(int count, char **arguments) {
    try {
        Peer peer(std::vector<std::string>(arguments + 1, arguments + count));
        std::cout << "ready " << peer.load() << ' ' << peer.version() << std::endl;
        peer.serve(std::cin, std::cout);
    } catch (const std::exception &error) {
        std::cerr << "bench-waf peer: " << error.what() << std::endl;
        return 1;
    }
    return 0;
}
